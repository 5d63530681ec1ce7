"""The scores: a table that can be sorted, bars with intervals, and what each loss costs."""

from __future__ import annotations

import math
from dataclasses import replace

from nearkin.report import summary
from nearkin.report.bench import Bench
from nearkin.report.figures.bars import Bar, bars
from nearkin.report.figures.draw import Figure, mark
from nearkin.report.figures.scatter import Spot, scatter
from nearkin.report.markup import Section, by_data, cell, folded, grid, name, plain_name, words
from nearkin.report.numbers import bytes_of, seconds_of
from nearkin.report.palette import SERIES
from nearkin.report.published import beside
from nearkin.report.summary import Row, best_interval
from nearkin.results import heading
from nearkin.tournament import Experiment
from nearkin.tournament.words import between, chance, percent, ranks_of, series


def table(bench: Bench) -> Section | None:
    """Every number, sortable."""
    parts = [(name(entry), sheet(bench, entry)) for entry in bench.tables]
    lead = "In percent; a mean is over the same runs for every loss. Click a heading to sort."
    if any(table.comparison is not None and len(table.labels) > 2 for table in bench.tables):
        lead += " The interval behind a distance from first is that of the pair alone, p is corrected for all pairs."
    return Section("table", "Scores", lead, folded(parts)) if parts else None


def sheet(bench: Bench, entry: Experiment) -> str:
    """The table of one experiment."""
    found = summary.rows(bench, entry)
    judged, several = entry.comparison is not None, len(entry.parts) > 1
    others = [key for key in summary.names(bench) if key != bench.metric]
    costs = {
        "time": ("seconds", any(math.isfinite(row.seconds) for row in found)),
        "memory": ("peak_bytes", any(math.isfinite(row.peak_bytes) for row in found)),
    }
    headings = [("loss", "word"), ("rank", "number"), (words(bench.metric), "number")]
    headings += [("95 % interval", "number")] if judged else []
    headings += [("deviation", "number")] if several else []
    headings += [("behind first", "number")]
    headings += [("p", "number"), ("group", "word")] if judged else []
    headings += [(f'<abbr title="{words(key)}">{words(heading(key))}</abbr>', "number") for key in others]
    headings += [(title, "number") for title, (_, there) in costs.items() if there]
    made = []
    places = ranks_of([row.rank for row in found])
    for row, place in zip(found, places, strict=True):
        if row.hole:
            wide = len(headings) - 2
            made.append(
                f'<tr class="hole">{cell(_label(bench, row), None, "word")}<td class="number">-</td>'
                f'<td colspan="{wide}" class="word">hole: {words(row.hole)}</td></tr>'
            )
            continue
        cells = [cell(_label(bench, row), row.label, "word"), cell(place, row.rank, "number")]
        cells += [cell(f"<b>{percent(row.score)}</b>", row.score, "number")]
        cells += [cell(between(row.low, row.high), row.low, "number")] if judged else []
        cells += [cell(percent(row.deviation), row.deviation, "number")] if several else []
        cells += [_behind(row)]
        if judged:
            said = chance(row.p)[2:].lstrip("= ") if math.isfinite(row.p) else ""
            cells += [
                cell(words(said), row.p if math.isfinite(row.p) else -1, "number"),
                cell(row.letters, row.letters, "word"),
            ]
        cells += [cell(percent(row.metric(key)), row.metric(key), "number") for key in others]
        if costs["time"][1]:
            cells += [cell(seconds_of(row.seconds), row.seconds, "number")]
        if costs["memory"][1]:
            cells += [cell(bytes_of(row.peak_bytes), row.peak_bytes, "number")]
        made.append(f"<tr>{''.join(cells)}</tr>")
    notes = [f"{len(entry.parts)} runs of each loss."] if several else []
    notes += [text for text in (_lengths(found), entry.reason) if text]
    note = f'<p class="note">{words(" ".join(notes))}</p>' if notes else ""
    return grid(headings, made, "sortable scores") + note


def _lengths(rows: list[Row]) -> str:
    """Which losses make longer vectors; in a column of its own it would push others off the page."""
    found = {row.label: row.numbers for row in rows if not row.hole}
    least = min(found.values(), default=0)
    long = [f"{label} makes vectors of {numbers:,} numbers" for label, numbers in found.items() if numbers > least]
    return f"{series(long)}, {least:,} is the least." if long else ""


def _label(bench: Bench, row: Row) -> str:
    drawn = mark(6, 6, bench.look(row.label), 4.6)
    return f'<svg class="key" viewBox="0 0 12 12" aria-hidden="true">{drawn}</svg>{words(row.label)}'


def _behind(row: Row) -> str:
    if not math.isfinite(row.behind):
        return cell("", 0, "number")
    shown = f" <small>{between(row.behind_low, row.behind_high)}</small>" if math.isfinite(row.behind_low) else ""
    return cell(f"{percent(row.behind)}{shown}", row.behind, "number")


def figures(bench: Bench) -> Section | None:
    """Bars with intervals, one panel for each experiment."""
    drawn: list[tuple[str, Figure]] = []
    printed = many = False
    for number, entry in enumerate(bench.tables):
        title, under = plain_name(entry)
        found = []
        for row in summary.rows(bench, entry):
            facts = beside(bench, entry, row.label, alike=True)
            others = tuple(sorted({(fact.value / 100, fact.protocol) for fact in facts}))
            printed = printed or bool(others)
            found.append(
                Bar(row.label, bench.look(row.label), row.score, row.low, row.high, row.letters, others, row.hole)
            )
        if found:
            found = painted(found)
            many = many or bool(found[0].paint)
            figure = bars(f"bars-{number + 1}", title, f"{bench.metric} in percent, {under}", found)
            drawn.append((entry.data, figure))
    if not drawn:
        return None
    lead = "Bars begin at zero."
    if any(table.comparison is not None for table in bench.tables):
        runs = (
            " and runs"
            if any(len(table.parts) > 1 for table in bench.tables)
            else ", not over runs: there is one of each"
        )
        lead += f" Lines are 95 % intervals over test classes{runs}; losses that share a letter cannot be told apart."
    if many:
        lead += " Blue are the best loss and those that cannot be told apart from it."
    if printed:
        lead += (
            " Diamonds are published numbers for the same loss, settings, network and size: filled where the epoch was "
            "chosen on validation classes, open where on the test set (test_feedback) or where nothing is said."
        )
    if len(bench.tables) == 1:  # there is room for the cost beside it
        beside_it = costs(bench)
        if beside_it is not None:
            lead += f" {beside_it.lead}"
            drawn += [(bench.tables[0].data, figure) for figure in beside_it.figures]
    return Section(
        "bars", "Losses side by side", lead, by_data(drawn, unfolded=True), tuple(figure for _, figure in drawn)
    )


def painted(found: list[Bar]) -> list[Bar]:
    """Of more losses than there are colours, those that may be the best in one colour, the others in grey."""
    if len(found) <= SERIES:
        return found
    first = found[0]
    best = [bar is first or bool({*bar.letters} & {*first.letters}) for bar in found]
    return [replace(bar, paint="f-hit" if leads else "grey") for bar, leads in zip(found, best, strict=True)]


def _band(entry: Experiment) -> tuple[float, float] | None:
    """The interval of the best score in percent."""
    found = best_interval(entry)
    return None if found is None else (100 * found[0], 100 * found[1])


def costs(bench: Bench) -> Section | None:
    """Score against seconds of training."""
    drawn: list[tuple[str, Figure]] = []
    for number, entry in enumerate(bench.tables):
        title, under = plain_name(entry)
        spots = [
            Spot(
                row.label,
                bench.look(row.label),
                row.seconds,
                100 * row.score,
                f"{row.label}: {percent(row.score)} % in {seconds_of(row.seconds)}",
            )
            for row in summary.rows(bench, entry)
            if math.isfinite(row.score) and math.isfinite(row.seconds) and row.seconds > 0
        ]
        if len(spots) > 1:
            y_name = f"{bench.metric} in percent"
            said = f"score against time, {under}"
            figure = scatter(f"cost-{number + 1}", title, said, spots, "seconds of training", y_name, _band(entry))
            drawn.append((entry.data, figure))
    if not drawn:
        return None
    lead = "Score against seconds of training: the best are at the top left. Measuring and saving are not counted."
    judged = any(table.comparison is not None for table in bench.tables)
    lead += " The band is the 95 % interval of the best score." if judged else ""
    shared = summary.sharing([run for run in bench.results if run.done])
    lead += f" {shared.capitalize()} shared the device at a time; alone, a run takes less." if shared else ""
    unknown = summary.sharing_unknown([run for run in bench.results if run.done])
    lead += f" {summary.UNKNOWN_SHARING.capitalize()}." if unknown else ""
    return Section("cost", "Score and cost", lead, by_data(drawn), tuple(figure for _, figure in drawn))

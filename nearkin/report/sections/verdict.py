"""What a person sees first: which loss wins here, by how much, with what certainty, at what cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nearkin.report import summary
from nearkin.report.bench import Bench
from nearkin.report.markup import badge, words
from nearkin.report.numbers import bytes_of, seconds_of
from nearkin.tournament import Verdict
from nearkin.tournament.sentences import luck
from nearkin.tournament.words import between, chance, count, percent, rank, series


def hero(bench: Bench) -> str:
    """The head of the page, as HTML."""
    verdict = bench.verdict
    if verdict is None:
        return f'<section class="hero" id="verdict"><h2>No verdict</h2><p class="sentence">{words(bench.why)}</p></section>'
    tiles = [_winner(verdict), _lead(verdict), _certainty(verdict), _cost(bench, verdict)]
    made = "".join(
        f'<div class="tile {kind}"><dt>{words(term)}</dt><dd><strong>{words(large)}</strong>{words(small)}</dd></div>'
        for term, large, small, kind in tiles
        if large
    )
    warning = ""
    if verdict.protocol == "test_feedback":
        warning = (
            '<p class="warning"><b>test_feedback</b>: the epoch was chosen on the test set, so every number here is '
            "too good. Use it to compare with papers that did the same, for nothing else.</p>"
        )
    return (
        f'<section class="hero" id="verdict"><h2>{words(headline(verdict))} {badge(verdict.protocol)}</h2>{warning}'
        f'<dl class="tiles">{made}</dl><p class="sentence">{words(verdict.sentence)}</p></section>'
    )


def headline(verdict: Verdict) -> str:
    """The outcome in a few words."""
    return f"{_outcome(verdict)} so far: the grid is not finished" if verdict.lacking else _outcome(verdict)


def _outcome(verdict: Verdict) -> str:
    if len(verdict.leaders) > 1:
        return f"{verdict.winner} share first place"
    if verdict.certain:
        return f"{verdict.winner} wins"
    if verdict.one_run:
        return f"{verdict.winner} leads, with one {verdict.once} of each"
    if verdict.shares_images and verdict.apart_from_all:
        return f"{verdict.winner} leads, but {luck(verdict)}"
    return f"{verdict.winner} leads, but not for certain"


Tile = tuple[str, str, str, str]


def _winner(verdict: Verdict) -> Tile:
    first = verdict.standings[0]
    if verdict.friedman is not None:
        where = f"of {verdict.winner}, best in {first.best} of {count(len(verdict.ranked), 'experiment')}"
        return f"Mean rank by {verdict.metric}", rank(first.mean), where, ""
    near = f", 95 % interval {between(first.low, first.high)}" if math.isfinite(first.low) else ""
    return verdict.metric, f"{percent(first.score)} %", f"{verdict.winner}{near}", ""


def _lead(verdict: Verdict) -> Tile:
    after = len(verdict.leaders)
    if after >= len(verdict.standings):
        return "Lead", "none", "all share first place", ""
    first, second = verdict.standings[0], verdict.standings[after]
    gaps = []
    for table in verdict.ranked:
        gaps.append(table.scores[table.labels.index(first.label)] - table.scores[table.labels.index(second.label)])
    gap = float(sum(gaps) / len(gaps))
    if verdict.friedman is not None:
        ahead = second.mean - first.mean
        unit = "rank" if math.isclose(ahead, 1) else "ranks"
        beside = f"{second.label} is next with mean rank {rank(second.mean)}; "
        beside += f"{_signed(gap)} points of {verdict.metric} on average"
        return "Lead", f"{rank(ahead)} {unit}", beside, ""
    table = verdict.ranked[0]
    shown = ""
    if table.comparison is not None:
        one, other = table.labels.index(first.label), table.labels.index(second.label)
        near = table.comparison.intervals
        shown = f", 95 % interval {between(near.difference_low[one, other], near.difference_high[one, other])}"
        shown += " of this pair alone" if len(table.labels) > 2 else ""
    return "Lead", f"{_signed(gap)} points", f"ahead of {second.label}{shown}", ""


def _signed(gap: float) -> str:
    return f"{100 * gap:+.2f}".replace("-", "−")


def _certainty(verdict: Verdict) -> Tile:
    if not verdict.judged:
        reason = next((table.reason for table in verdict.ranked if table.reason), "")
        return "Certainty", "? unknown", reason or "no answers to single queries were kept", "unsure"
    leaders = set(verdict.leaders)
    first = verdict.standings[0].label
    near = [
        entry.label
        for entry in verdict.standings
        if entry.label not in leaders and any(first in group and entry.label in group for group in verdict.groups)
    ]
    if verdict.certain:
        if verdict.lacking:
            told = f"told apart at 95 % from every other loss that was compared{_p(verdict, near)}; {verdict.lacking}"
            return "Certainty", "~ so far", told, "unsure"
        return "Certainty", "✓ sure", f"told apart from every other loss at 95 %{_p(verdict, near)}", "sure"
    if len(leaders) > 1:
        return "Certainty", "= tied", f"{series(verdict.leaders)} have the same place", "unsure"
    if verdict.one_run and not near:
        told = f"these networks are told apart{_p(verdict, near)}, but {luck(verdict)}"
        return "Certainty", f"~ one {verdict.once}", told, "unsure"
    if verdict.shares_images and not near:
        told = f"told apart by ranks from every other loss{_p(verdict, near)}, but {luck(verdict)}"
        return "Certainty", "~ shared images", told, "unsure"
    return "Certainty", "~ not sure", f"cannot be told apart from {series(near, 4)}{_p(verdict, near)}", "unsure"


def _p(verdict: Verdict, near: Sequence[str]) -> str:
    """The p-value that the certainty rests on, where one does."""
    test = verdict.friedman
    if test is not None:
        # With the losses different as a whole, single ones are told apart by the critical difference, which has no p.
        return "" if test.significant and near else f" ({chance(test.p)})"
    found = verdict.ranked[0].comparison
    if found is None:
        return ""
    labels = verdict.ranked[0].labels
    first = labels.index(verdict.standings[0].label)
    if near:
        return f" ({chance(found.p[first, labels.index(near[0])])} for {near[0]})"
    return f" ({chance(max(found.p[first, at] for at in range(len(labels)) if at != first))} at most)"


def _cost(bench: Bench, verdict: Verdict) -> Tile:
    """Seconds of a run over all ranked experiments, beside the quickest loss and the equals that are quicker."""
    spent = {
        entry.label: [summary.cost(bench.counted(table, entry.label), "seconds") for table in verdict.ranked]
        for entry in verdict.standings
    }
    total = {label: sum(values) / len(values) for label, values in spent.items()}
    known = {label: value for label, value in total.items() if math.isfinite(value) and value > 0}
    first = verdict.standings[0].label
    if first not in known:
        return "Cost", "", "", ""
    own = known[first]
    quick = min(known, key=lambda label: (known[label], label))
    said = ["to train once" + (", on average" if len(verdict.ranked) > 1 else "")]
    runs = [run for table in verdict.ranked for label in known for run in bench.counted(table, label)]
    shared = summary.sharing(runs)
    said[0] += f" while {shared} shared the device" if shared else ""
    said[0] += f" ({summary.UNKNOWN_SHARING})" if summary.sharing_unknown(runs) else ""
    peaks = [summary.cost(bench.counted(table, first), "peak_bytes") for table in verdict.ranked]
    if all(math.isfinite(peak) for peak in peaks):
        said.append(f"in {bytes_of(max(peaks))} of device memory")
    lengths = {label: bench.counted(verdict.ranked[0], label)[0].total for label in spent}
    if lengths[first] > min(lengths.values()):
        said.append(f"with vectors {lengths[first] / min(lengths.values()):g} times as long as the shortest")
    if quick == first:
        said.append("the quickest of all")
    else:
        said.append(f"{own / known[quick]:.2f} times the quickest ({quick})")
    equals = {label for group in verdict.groups if first in group for label in group} - {first}
    cheaper = sorted(
        (label for label in equals if known.get(label, math.inf) < 0.9 * own), key=lambda label: known[label]
    )
    if cheaper:
        said.append(f"{cheaper[0]} cannot be told apart and takes {known[cheaper[0]] / own:.2f} times as long")
    return "Cost", seconds_of(own), ", ".join(said), ""

"""A verdict as text: a table for each experiment, one for all of them, the sentence, notes and holes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from nearkin.tournament.experiment import Experiment
from nearkin.tournament.groups import groups, letters
from nearkin.tournament.ranks import ranks
from nearkin.tournament.verdict import Verdict
from nearkin.tournament.words import between, chance, count, percent, ranks_of

Row = tuple[str, ...]


# With more experiments than this, one table of ranks stands for their own tables.
FEW = 3


def shown(verdict: Verdict, width: int = 100, colour: bool = False, each: bool = False) -> str:
    """The whole verdict, for a screen of that width; ``each``: with the table of every experiment, however many."""
    parts = []
    if each or len(verdict.experiments) <= FEW:
        parts += [one(table, verdict.metric, colour) for table in verdict.experiments if table.labels]
    if verdict.friedman is not None:
        parts.append(places(verdict, width, colour))
        parts.append(overall(verdict, colour))
    parts.append(_wrapped(verdict.sentence, width))
    for title, lines in (("Notes", verdict.notes), ("Holes", verdict.holes)):
        if lines:
            parts.append(f"{title}\n" + "\n".join(_wrapped(line, width, "- ") for line in lines))
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def one(table: Experiment, metric: str, colour: bool = False) -> str:
    """The table of an experiment: rank, loss, mean, interval, deviation over runs, distance to the first, p and group."""
    own = ranks(table.scores)
    columns: dict[str, list[str]] = {
        "rank": ranks_of([float(own[at]) for at in table.order]),
        "loss": [table.labels[at] for at in table.order],
        metric: [percent(table.scores[at]) for at in table.order],
    }
    found, first = table.comparison, table.order[0]
    if found is not None:
        near = found.intervals
        columns["95 % interval"] = [between(near.low[at], near.high[at]) for at in table.order]
    if len(table.parts) > 1:
        columns["deviation"] = [percent(table.spread[at]) for at in table.order]
    if found is not None:
        gap, low, high = near.difference[first], near.difference_low[first], near.difference_high[first]
        behind = [f"{percent(gap[at])} {between(low[at], high[at])}" for at in table.order[1:]]
        columns["behind the first"] = ["", *behind]
        columns["p"] = ["", *(chance(found.p[first, at])[2:].lstrip("= ") for at in table.order[1:])]
        columns["group"] = letters(groups(found.apart[np.ix_(table.order, table.order)]), len(table.order))
    runs = f", {len(table.parts)} runs of each loss" if len(table.parts) > 1 else ""
    rows = list(zip(*columns.values(), strict=True))
    return f"{table.name} (in percent{runs})\n" + grid(tuple(columns), rows, colour)


def places(verdict: Verdict, width: int = 100, colour: bool = False) -> str:
    """The rank of each loss in each experiment, experiments by number; as many columns side by side as fit."""
    numbers = range(len(verdict.ranked))
    label = max(len(entry.label) for entry in verdict.standings)
    fit = max(1, (width - label) // 5)
    title = f"Rank of each loss in each experiment, {verdict.metric}, {verdict.protocol}"
    blocks = []
    for start in range(0, len(numbers), fit):
        columns = numbers[start : start + fit]
        made = [ranks_of([entry.ranks[at] for entry in verdict.standings]) for at in columns]
        rows = [(entry.label, *own) for entry, *own in zip(verdict.standings, *made, strict=True)]
        blocks.append(grid(("loss", *(str(at + 1) for at in columns)), rows, colour))
    legend = []
    for at, table in enumerate(verdict.ranked):
        best = table.order[0]
        legend.append(f"{at + 1:3d}  {table.name}: {table.labels[best]} {percent(table.scores[best])} %")
    return "\n".join([title, *(block.rstrip("\n") for block in blocks), "", *legend]) + "\n"


def overall(verdict: Verdict, colour: bool = False) -> str:
    """The table over all experiments: total, mean and standard deviation of the ranks, group."""
    test = verdict.friedman
    totals = ranks_of([entry.total for entry in verdict.standings])
    rows = [
        (entry.label, total, f"{entry.mean:.2f}", f"{entry.deviation:.2f}", str(entry.best), entry.letters)
        for entry, total in zip(verdict.standings, totals, strict=True)
    ]
    headings = ("loss", "total of ranks", "mean", "deviation", "best in", "group")
    title = f"Over {count(len(verdict.ranked), 'experiment')}, {verdict.metric}, {verdict.protocol}"
    lines = [title, grid(headings, rows, colour).rstrip("\n")]
    if test is not None and test.method == "wilcoxon":
        lines.append(f"Wilcoxon signed-rank test: {chance(test.p)}.")
    elif test is not None:
        lines.append(
            f"Friedman chi-square {test.statistic:.2f} ({chance(test.statistic_p)}), Iman-Davenport F {test.f:.2f} "
            f"({chance(test.f_p)}){f', by reordering {chance(test.p)}' if test.method == 'reordering' else ''}."
        )
        lines.append(f"Critical difference (Nemenyi, {test.level:g}): {test.difference:.2f}.")
    if verdict.judged:
        lines.append("Losses that share a letter cannot be told apart.")
    return "\n".join(lines) + "\n"


def grid(headings: Row, rows: Sequence[Row], colour: bool = False) -> str:
    """Columns with two spaces between them, words to the left and numbers to the right; the first row is bold in colour."""
    left = ("loss", "group")
    sizes = [max(len(row[place]) for row in (headings, *rows)) for place in range(len(headings))]
    lines = []
    for row in (headings, tuple("-" * size for size in sizes), *rows):
        cells = [
            cell.ljust(size) if heading in left else cell.rjust(size)
            for heading, cell, size in zip(headings, row, sizes, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    if colour and rows:
        lines[2] = f"\x1b[1m{lines[2]}\x1b[0m"
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int, bullet: str = "") -> str:
    return textwrap.fill(
        text,
        max(40, width),
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )

"""Recall of every class: which are hard, for whom."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from nearkin.report.bench import Bench, winner
from nearkin.report.figures.draw import Figure, shorten, twice
from nearkin.report.figures.lines import Axis, Line, lines
from nearkin.report.markup import Section, breakable, cell, folded, grid, joined, name, panels, words
from nearkin.tournament import Experiment

HARD, EASY = 12, 4
BEST = 5
STEPS = 60
# The names of more losses than this stand upright above their columns.
MANY = 8
# Room for such a name, in pixels.
LONGEST = 190.0


def section(bench: Bench) -> Section | None:
    """For one experiment of each data set: classes in the order of their recall, and the hardest and easiest by name."""
    parts, drawn, left_out = [], [], False
    for number, table in enumerate(bench.shown()):
        found = _scores(bench, table)
        if found is None:
            continue
        labels, numbers, sizes, scores, named = found
        lined = {*range(min(BEST, len(labels))), len(labels) - 1}
        left_out = left_out or len(lined) < len(labels)
        series = [
            Line(label, bench.look(label), _sorted(scores[place]))
            for place, label in enumerate(labels)
            if place in lined
        ]
        figure = twice(
            functools.partial(
                _lines,
                f"classes-{number + 1}",
                f"{table.data}: {len(numbers):,} classes, the hardest first",
                joined(table.network, f"{table.dim} dimensions", table.protocol),
                series,
                f"{bench.metric} in percent",
            )
        )
        best = labels.index(winner(table))
        order = np.lexsort((numbers, scores[best]))
        hard = order[: min(HARD, len(order))]
        easy = order[max(HARD, len(order) - EASY) :]
        body = panels([figure]) + _heat(bench, table, labels, (hard, easy), numbers, sizes, scores, named)
        parts.append((name(table), body))
        drawn.append(figure)
    lead = (
        "A mean hides its classes. Each line sorts the classes by its own recall"
        + (f", for the best {BEST} losses and the last" if left_out else "")
        + "; the table names the hardest and the easiest for the best loss of the experiment."
    )
    return Section("classes", "Class by class", lead, folded(parts), tuple(drawn)) if parts else None


def _lines(name: str, title: str, under: str, series: list[Line], metric: str, width: float) -> Figure:
    return lines(
        name,
        title,
        under,
        series,
        Axis("classes, in percent of all", low=0, high=100),
        Axis(metric, low=0, high=100),
        height=max(250.0, 70 + 13.0 * len(series)),
        width=width,
        marks=False,
    )


Found = tuple[list[str], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], list[str]]


def _scores(bench: Bench, table: Experiment) -> Found | None:
    """Losses, numbers and sizes of classes, scores (losses, classes) in percent, names by class number."""
    labels: list[str] = []
    scores: list[NDArray[np.float64]] = []
    numbers, sizes = np.empty(0, np.int64), np.empty(0, np.int64)
    named: list[str] = []
    for at in table.order:
        runs = [bench.answers(run) for run in bench.counted(table, table.labels[at])]
        if not runs or any(bench.metric not in run for run in runs):
            continue
        values = []
        for run in runs:
            real = np.isfinite(run[bench.metric])
            numbers, inverse, sizes = np.unique(run["labels"][real], return_inverse=True, return_counts=True)
            values.append(np.bincount(inverse, run[bench.metric][real].astype(np.float64)) / sizes)
            named = [str(entry) for entry in run["class_names"]]
        if scores and len(values[0]) != len(scores[0]):
            continue
        labels.append(table.labels[at])
        scores.append(100 * np.mean(values, 0))
    if not labels or winner(table) not in labels:
        return None
    return labels, numbers, sizes, np.array(scores), named


def _sorted(values: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    """Recall at each percentile of the classes."""
    shares = np.linspace(0, 100, min(STEPS, max(2, len(values))) + 1)
    return tuple(zip(shares.tolist(), np.percentile(values, shares).tolist(), strict=True))


def _upright(label: str) -> str:
    """A name that stands upright, cut where it would make the head of the table as tall as the table."""
    short = shorten(label, LONGEST)
    return words(label) if short == label else f'<abbr title="{words(label)}">{words(short)}</abbr>'


def _heat(
    bench: Bench,
    table: Experiment,
    labels: list[str],
    groups: tuple[NDArray[np.int64], NDArray[np.int64]],
    numbers: NDArray[np.int64],
    sizes: NDArray[np.int64],
    scores: NDArray[np.float64],
    named: list[str],
) -> str:
    """Classes by losses, numbers on a ground that is the stronger the higher they are."""
    many = len(labels) > MANY
    shown = [_upright(label) if many else breakable(label) for label in labels]
    headings = [("class", "word"), ("queries", "number"), *((label, "number") for label in shown)]
    rows = []
    for kind, places in zip(("hardest", "easiest"), groups, strict=True):
        if len(places):
            said = f"{kind} for {words(winner(table))}"
            rows.append(
                f'<tr class="part"><th colspan="{len(headings)}" scope="rowgroup"><span>{said}</span></th></tr>'
            )
        for place in places:
            title = named[numbers[place]] if numbers[place] < len(named) else f"class {numbers[place]}"
            cells = [cell(words(title), None, "word"), cell(f"{sizes[place]:,}", None, "number")]
            for own in scores[:, place]:
                cells.append(f'<td class="number heat" style="--v:{own:.0f}%">{own:.1f}</td>')
            rows.append(f"<tr>{''.join(cells)}</tr>")
    return grid(
        headings, rows, "heats tall" if many else "heats", f"{words(bench.metric)} in percent, {words(table.protocol)}"
    )

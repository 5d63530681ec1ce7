"""Pairs of one class and of two: how alike they are, and how much the two kinds overlap."""

from __future__ import annotations

import math

from nearkin.report.bench import Bench
from nearkin.report.figures.draw import Figure, sheet
from nearkin.report.figures.histogram import coarse, histogram, overlap
from nearkin.report.markup import Section, folded, name, panels
from nearkin.tournament import Experiment

Histogram = dict[str, list[float]]


def section(bench: Bench) -> Section | None:
    """A panel for each loss, those that overlap least first."""
    parts, drawn = [], []
    for number, table in enumerate(bench.tables):
        found = [(*entry, label) for label in table.labels if (entry := _kept(bench, table, label))]
        if found:
            found.sort(key=lambda entry: entry[0])
            figures = [
                _panel(f"similarities-{number + 1}-{place + 1}", label, mean, runs)
                for place, (mean, runs, label) in enumerate(found)
            ]
            parts.append((name(table), panels(figures, "small")))
            drawn.append(sheet(f"similarities-{number + 1}", f"Cosine of pairs of test images, {table.name}", figures))
    lead = (
        '<span class="hit-word">Solid: pairs of one class.</span> <span class="miss-word">Dashed: pairs of two '
        "classes.</span> Grey is what they share; the less, the better one threshold separates them. Each run has its own "
        "threshold: of several the mean overlap is said, with the least and the most, and the run nearest to it is drawn. "
        "The distance is that of unit vectors."
    )
    return (
        Section("similarities", "Pairs of one class and of two", lead, folded(parts), tuple(drawn)) if parts else None
    )


Runs = list[tuple[Histogram, float]]
"""The pairs of each run of a loss, with the share that both kinds have in common."""


def _kept(bench: Bench, table: Experiment, label: str) -> tuple[float, Runs] | None:
    """The mean overlap with its runs. Nothing where a run kept no pairs: a mean of the others would look like one of all."""
    runs: Runs = []
    for run in bench.counted(table, label):
        pairs = bench.similarities(run)
        if pairs is None or not sum(pairs["positive"]) or not sum(pairs["negative"]):
            return None
        runs.append((pairs, overlap(pairs["positive"], pairs["negative"])))
    return (math.fsum(share for _, share in runs) / len(runs), runs) if runs else None


def _panel(title: str, label: str, mean: float, runs: Runs) -> Figure:
    shares = [share for _, share in runs]
    under = f"overlap {100 * mean:.1f} %"
    if len(runs) > 1:
        under += f" ({100 * min(shares):.1f} to {100 * max(shares):.1f})"
    near, _ = min(runs, key=lambda run: abs(run[1] - mean))
    # One that cannot tell its overlap is shown instead: it says so.
    drawn = next((pairs for pairs, _ in runs if coarse(pairs["positive"], pairs["negative"])), near)
    return histogram(title, label, drawn["edges"], drawn["positive"], drawn["negative"], under)

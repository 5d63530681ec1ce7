"""Pairs of one class and of two: how alike they are, and how much the two kinds overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nearkin.report.bench import Bench
from nearkin.report.figures.draw import sheet
from nearkin.report.figures.histogram import histogram, overlap
from nearkin.report.markup import Section, folded, name, panels


def section(bench: Bench) -> Section | None:
    """A panel for each loss, those that overlap least first; pairs of all runs together."""
    parts, drawn = [], []
    for number, table in enumerate(bench.tables):
        found = []
        for label in table.labels:
            kept = [bench.similarities(run) for run in bench.counted(table, label)]
            whole = together([entry for entry in kept if entry is not None]) if None not in kept else None
            if whole is None:
                continue
            positive, negative = whole["positive"], whole["negative"]
            if sum(positive) and sum(negative):
                found.append((overlap(positive, negative), label, whole["edges"], positive, negative))
        if found:
            figures = [
                histogram(f"similarities-{number + 1}-{place + 1}", label, edges, positive, negative)
                for place, (_, label, edges, positive, negative) in enumerate(sorted(found, key=lambda entry: entry[0]))
            ]
            parts.append((name(table), panels(figures, "small")))
            drawn.append(sheet(f"similarities-{number + 1}", f"Cosine of pairs of test images, {table.name}", figures))
    lead = (
        '<span class="hit-word">Solid: pairs of one class.</span> <span class="miss-word">Dashed: pairs of two '
        "classes.</span> Grey is what they share; the less, the better one threshold separates them. The distance is that "
        "of unit vectors."
    )
    return (
        Section("similarities", "Pairs of one class and of two", lead, folded(parts), tuple(drawn)) if parts else None
    )


Histogram = dict[str, list[float]]
KINDS = ("positive", "negative")


def together(found: Sequence[Histogram]) -> Histogram | None:
    """The histograms of several runs as one, on the coarsest of their steps; None where these do not fit together.

    >>> fine = {"edges": [0.5, 0.75, 1.0], "positive": [1, 2], "negative": [0, 3]}
    >>> coarse = {"edges": [-0.5, 0.0, 0.5, 1.0], "positive": [0, 0, 4], "negative": [5, 0, 0]}
    >>> together([fine, coarse])
    {'edges': [-0.5, 0.0, 0.5, 1.0], 'positive': [0.0, 0.0, 7.0], 'negative': [5.0, 0.0, 3.0]}
    """
    if not found:
        return None
    counts = [_steps(entry["edges"]) for entry in found]
    coarse = min(counts)
    if not coarse or any(steps % coarse for steps in counts):
        return None
    added: dict[str, defaultdict[int, float]] = {key: defaultdict(float) for key in KINDS}
    for entry, steps in zip(found, counts, strict=True):
        first = _place(entry["edges"][0], steps)
        for key in KINDS:
            for number, count in enumerate(entry[key]):
                added[key][(first + number) * coarse // steps] += count
    places = range(min(added["positive"]), max(added["positive"]) + 1)
    edges = [round(2 * place / coarse - 1, 13) for place in (*places, places.stop)]
    return {"edges": edges} | {key: [added[key][place] for place in places] for key in KINDS}


def _steps(edges: Sequence[float]) -> int:
    """How many steps of this width there are from -1 to 1; 0 where they are uneven or not counted from -1."""
    steps = round(2 / (edges[1] - edges[0])) if edges[1] > edges[0] else 0
    first = _place(edges[0], steps)
    fits = all(abs((edge + 1) * steps / 2 - first - number) < 1e-3 for number, edge in enumerate(edges))
    return steps if fits else 0


def _place(edge: float, steps: int) -> int:
    return round((edge + 1) * steps / 2)

"""Pairs of one class and of two: how alike they are, and how much the two kinds overlap."""

from __future__ import annotations

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
            whole = [entry for entry in kept if entry is not None]
            if not whole or len(whole) < len(kept) or any(entry["edges"] != whole[0]["edges"] for entry in whole):
                continue
            positive, negative = (
                [sum(column) for column in zip(*(entry[key] for entry in whole), strict=True)]
                for key in ("positive", "negative")
            )
            if sum(positive) and sum(negative):
                found.append((overlap(positive, negative), label, whole[0]["edges"], positive, negative))
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

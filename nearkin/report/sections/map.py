"""The map of the embedding of the best loss."""

from __future__ import annotations

from collections.abc import Sequence

from nearkin.report.bench import Bench
from nearkin.report.embedding import layout
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.points import Point, points
from nearkin.report.markup import Section, joined, legend, panel, words
from nearkin.report.sections.confused import confusions
from nearkin.report.subject import Subject


def section(bench: Bench, subjects: Sequence[Subject], whose: str = "") -> Section | None:
    """One map for each data set whose best run kept its weights; ``whose``: HTML for the lead."""
    made: list[str] = []
    drawn: list[Figure] = []
    for subject in subjects:
        found = layout(bench, subject) if bench.points else None
        if found is None or "recall@1" not in subject.answers:
            continue
        rows, places, method = found
        at = {int(row): place for place, row in enumerate(subject.answers["rows"])}
        hits = subject.answers["recall@1"]
        marks = [
            Point(float(x), float(y), subject.name(int(subject.labels[row])), bool(hits[at[int(row)]] > 0))
            for row, (x, y) in zip(rows.tolist(), places, strict=True)
        ]
        present = {mark.name for mark in marks}
        named: list[str] = []
        for entry in confusions(subject, 40):
            pair = [subject.name(entry.one), subject.name(entry.other)]
            if present.issuperset(pair) and len({*named, *pair}) <= 8:
                named += [one for one in pair if one not in named]
        title = f"{subject.table.data}: {len(marks):,} test images under {subject.label}"
        table = subject.table
        under = joined(method, table.network, f"{table.dim} dimensions", table.protocol, f"seed {subject.run.seed}")
        bare = points(f"map-{len(drawn) + 1}", title, under, marks, named, bare=True)
        made.append(f'<h3>{words(title)}</h3><p class="note">{words(under)}</p>{legend(named)}{panel(bare)}')
        drawn.append(points(bare.name, title, under, marks, named))
    lead = (
        "Images the network has never seen, neighbours near each other. Coloured classes are those it confuses most; an "
        "orange ring or cross is an image whose nearest neighbour is of another class. Distances across the map mean little."
        + whose
    )
    return Section("map", "Map of the embedding", lead, "".join(made), tuple(drawn)) if drawn else None

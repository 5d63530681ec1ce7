"""Findings about copies: what it means that two images show one picture depends on their classes and parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from nearkin.data.doctor.copies import Pair
from nearkin.data.doctor.findings import Finding
from nearkin.data.doctor.rows import Rows

WORST_FIRST = ("leak", "conflict", "near-duplicate", "duplicate")


def copy_findings(rows: Rows, pairs: Sequence[Pair], groups: Sequence[Sequence[int]]) -> Iterator[Finding]:
    """One finding for each image that repeats an earlier one: its worst relation to any of these."""
    worst: dict[int, tuple[int, float, Pair]] = {}

    def consider(pair: Pair) -> None:
        rank = WORST_FIRST.index(_relation(rows, pair))
        entry = (rank, -1.0 if pair.alike is None else -pair.alike, pair)
        if pair.second not in worst or entry[:2] < worst[pair.second][:2]:
            worst[pair.second] = entry

    for group in groups:
        # The first of each part and class is enough: the others repeat it.
        first: dict[tuple[str, int], int] = {}
        for row in group:
            for other in first.values():
                consider(Pair(other, row))
            first.setdefault((rows.places[row].part, int(rows.labels[row])), row)
    for pair in pairs:
        consider(pair)
    for row in sorted(worst):
        pair = worst[row][2]
        yield Finding(_relation(rows, pair), rows.places[pair.second], _how(rows, pair), rows.places[pair.first])


def _relation(rows: Rows, pair: Pair) -> str:
    one, other = rows.places[pair.first], rows.places[pair.second]
    if one.part != other.part:
        return "leak"
    if rows.labels[pair.first] != rows.labels[pair.second]:
        return "conflict"
    return "duplicate" if pair.alike is None else "near-duplicate"


def _how(rows: Rows, pair: Pair) -> str:
    if pair.alike is None:
        return "the same file" if isinstance(rows.sources[pair.first], Path) else "the same pixels"
    return f"{'mirror image' if pair.mirrored else 'nearly the same picture'}, alike to {pair.alike:.3f}"

"""Pairs of classes that are most often taken for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearkin.report.markup import Section, folded, name, words
from nearkin.report.subject import Subject

PAIRS = 8


@dataclass(frozen=True)
class Confusion:
    """Two classes: ``mistakes`` of ``queries`` of both found the other first; ``query``, ``found``: the rows most alike."""

    one: int
    other: int
    mistakes: int
    queries: int
    query: int
    found: int


def confusions(subject: Subject, most: int = PAIRS) -> list[Confusion]:
    """The pairs with the most mistakes."""
    rows, labels = subject.answers["rows"], subject.answers["labels"]
    nearest = subject.answers["nearest"][:, 0]
    classes = np.where(nearest >= 0, subject.labels[np.maximum(nearest, 0)], -1)
    wrong = np.flatnonzero((classes >= 0) & (classes != labels))
    sizes = dict(zip(*(part.tolist() for part in np.unique(labels, return_counts=True)), strict=True))
    pairs: dict[tuple[int, int], list[int]] = {}
    for place in wrong.tolist():
        pair = sorted((int(labels[place]), int(classes[place])))
        pairs.setdefault((pair[0], pair[1]), []).append(place)
    similarity = subject.answers["similarity"][:, 0]
    made = []
    for (one, other), places in sorted(pairs.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:most]:
        clear = max(places, key=lambda place: (float(similarity[place]), -place))
        asked = sizes.get(one, 0) + sizes.get(other, 0)
        made.append(Confusion(one, other, len(places), asked, int(rows[clear]), int(nearest[clear])))
    return made


def section(subjects: Sequence[Subject]) -> Section | None:
    """Cards of pairs, with the two images that look most alike to the network."""
    parts = []
    for subject in subjects:
        found = confusions(subject)
        if found:
            cards = "".join(_card(subject, entry) for entry in found)
            said = f"{words(subject.label)}, seed {subject.run.seed}"
            parts.append((f"{name(subject.table)} <small>{said}</small>", f'<div class="cards">{cards}</div>'))
    lead = "Pairs of classes whose images most often find an image of the other class first, both ways counted."
    return Section("confused", "Most confused classes", lead, folded(parts)) if parts else None


def _card(subject: Subject, entry: Confusion) -> str:
    images = ""
    if subject.drawn:
        first, second = (
            subject.pictures.image(row, subject.name(int(subject.labels[row]))) for row in (entry.query, entry.found)
        )
        images = f'<div class="pair">{first}{second}</div>'
    # The names stand in the order of the images.
    order = (entry.one, entry.other)
    if subject.labels[entry.query] == entry.other:
        order = (entry.other, entry.one)
    names = " <span>and</span> ".join(f"<b>{words(subject.name(number))}</b>" for number in order)
    share = f"{entry.mistakes} of {entry.queries} queries" if entry.queries else f"{entry.mistakes} queries"
    return f'<div class="card">{images}<p>{names}</p><p class="note">{share} of both</p></div>'

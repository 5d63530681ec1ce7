"""Pairs of classes that are most often taken for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearkin.report.markup import Section, cell, folded, grid, name, words
from nearkin.report.subject import Subject
from nearkin.tournament.words import series

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


def section(
    subjects: Sequence[Subject], lent: Sequence[Subject] = (), whose: str = "", lacking: Sequence[str] = ()
) -> Section | None:
    """Cards of pairs, with the two images that look most alike to the network; tables where there are none.

    ``lent``: those of another benchmark, with images; ``whose``: HTML that says so. ``lacking``: data sets whose runs kept
    no neighbours.
    """
    own, others = _parts(subjects), _parts(lent)
    lead = "Pairs of classes whose images most often find an image of the other class first, both ways counted."
    if others:
        lead += whose
    body = (folded(own) if own else "") + (folded(others) if others else "")
    if lacking:
        said = f"The runs on {series(lacking)} kept no neighbours, so that its most confused classes are not known."
        body = f'<p class="note">{words(said)}</p>{body}'
    return Section("confused", "Most confused classes", lead, body) if body else None


def _parts(subjects: Sequence[Subject]) -> list[tuple[str, str]]:
    parts = []
    for subject in subjects:
        found = confusions(subject)
        if found:
            said = f"{words(subject.label)}, seed {subject.run.seed}"
            body = _cards(subject, found) if subject.drawn else _table(subject, found)
            parts.append((f"{name(subject.table)} <small>{said}</small>", body))
    return parts


def _cards(subject: Subject, found: Sequence[Confusion]) -> str:
    return f'<div class="cards">{"".join(_card(subject, entry) for entry in found)}</div>'


def _card(subject: Subject, entry: Confusion) -> str:
    first, second = (
        subject.pictures.image(row, subject.name(int(subject.labels[row]))) for row in (entry.query, entry.found)
    )
    # The names stand in the order of the images.
    order = (entry.one, entry.other)
    if subject.labels[entry.query] == entry.other:
        order = (entry.other, entry.one)
    return (
        f'<div class="card"><div class="pair">{first}{second}</div><p>{_names(subject, order)}</p>'
        f'<p class="note">{entry.mistakes} of {entry.queries} queries of both</p></div>'
    )


def _table(subject: Subject, found: Sequence[Confusion]) -> str:
    """Without images, a line for each pair: cards would be empty."""
    headings = [("classes", "word"), ("mistakes", "number"), ("share of the queries of both", "number")]
    rows = []
    for entry in found:
        share = 100 * entry.mistakes / max(entry.queries, 1)
        names = cell(_names(subject, (entry.one, entry.other)), None, "word source")
        count = cell(f"{entry.mistakes} of {entry.queries}", None, "number")
        rows.append(f'<tr>{names}{count}<td class="number heat" style="--v:{share:.0f}%">{share:.0f} %</td></tr>')
    return grid(headings, rows, "heats")


def _names(subject: Subject, order: tuple[int, int]) -> str:
    return " <span>and</span> ".join(f"<b>{words(subject.name(number))}</b>" for number in order)

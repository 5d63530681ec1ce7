"""Retrieval strips: a query, then what was found first, hits and misses marked by colour and sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nearkin.report.bench import Bench
from nearkin.report.markup import Section, folded, name, words
from nearkin.report.numbers import cosine_of
from nearkin.report.subject import Subject


def evenly(subject: Subject, count: int) -> list[int]:
    """Places of queries at even steps through the test set: chosen without looking at what they found."""
    total = len(subject.answers["rows"])
    return [int((step + 0.5) * total / count) for step in range(min(count, total))] if count else []


def surest_mistakes(subject: Subject, count: int) -> list[int]:
    """Places of the queries whose first neighbour is wrong and most alike, one of each class."""
    nearest, labels = subject.answers["nearest"][:, 0], subject.answers["labels"]
    classes = np.where(nearest >= 0, subject.labels[np.maximum(nearest, 0)], -1)
    wrong = np.flatnonzero((classes >= 0) & (classes != labels))
    order = wrong[np.argsort(-subject.answers["similarity"][wrong, 0], kind="stable")]
    found: list[int] = []
    seen: set[int] = set()
    for place in order.tolist():
        if len(found) < count and int(labels[place]) not in seen:
            seen.add(int(labels[place]))
            found.append(place)
    return found


def section(bench: Bench, subjects: Sequence[Subject], whose: str = "") -> Section | None:
    """Strips of the best loss and, folded away, of the last one for the same queries; ``whose``: HTML for the lead."""
    parts, missing = [], []
    for subject in subjects:
        if not subject.drawn:
            missing.append(f"{subject.table.data}: {subject.pictures.why}.")
            continue
        places = evenly(subject, bench.queries)
        said = f"{words(subject.label)}, seed {subject.run.seed}"
        body = _strips(subject, subject.answers, places)
        mistakes = surest_mistakes(subject, max(1, bench.queries // 2)) if bench.queries else []
        if mistakes:
            body += f"<h4>Surest mistakes of {words(subject.label)}</h4>{_strips(subject, subject.answers, mistakes)}"
        last = subject.table.labels[subject.table.order[-1]]
        if last != subject.label:
            other = bench.answers(bench.counted(subject.table, last)[0])
            if other and "nearest" in other and np.array_equal(other["rows"], subject.answers["rows"]):
                shown = _strips(subject, other, places)
                body += f"<details><summary>The same queries under {words(last)}, last here</summary>{shown}</details>"
        if places:
            parts.append((f"{name(subject.table)} <small>{said}</small>", body))
    if not parts:
        return None
    lead = (
        "The query stands first, then the nearest images with their cosine. "
        '<span class="hit-word">✓ blue frame: the same class.</span> <span class="miss-word">✗ orange, dashed frame: '
        "another class.</span> Queries are taken at even steps through the test set, not for what they found." + whose
    )
    note = "".join(f'<p class="note">{words(sentence)}</p>' for sentence in missing)
    return Section("strips", "What queries find", lead, folded(parts) + note)


def _strips(subject: Subject, answers: dict[str, Any], places: Sequence[int]) -> str:
    made = []
    for place in places:
        own = int(answers["labels"][place])
        row = int(answers["rows"][place])
        cells = [
            f'<figure class="query">{subject.pictures.image(row, f"query: {subject.name(own)}")}'
            f"<figcaption>{words(subject.name(own))}</figcaption></figure>"
        ]
        for near, alike in zip(answers["nearest"][place].tolist(), answers["similarity"][place].tolist(), strict=True):
            if near < 0 or not math.isfinite(alike):
                continue
            found = int(subject.labels[near])
            hit = found == own
            kind, sign = ("hit", "✓") if hit else ("miss", "✗")
            title = subject.name(found)
            who = "" if hit else f"<span>{words(title)}</span>"  # that of a hit stands below the query
            cells.append(
                f'<figure class="{kind}" title="{words(title)}">{subject.pictures.image(near, f"{kind}: {title}")}'
                f"<figcaption><b>{sign}</b> {cosine_of(alike)}{who}</figcaption></figure>"
            )
        made.append(f'<div class="strip" tabindex="0">{"".join(cells)}</div>')
    return "".join(made)

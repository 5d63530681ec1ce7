"""What the index says about itself: every image, or many of them, asks for its own neighbours.

That gives the share of images whose nearest neighbour is of their class (recall@1), class by class; the queries that fail
worst; images that look like another class than their own; and images that are the same twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nearkin.index import Index
from nearkin.serve.prints import confirmed, of_index, taken

MOST_QUERIES = 4000
NEAR = 10
SAME = 0.9995
"""Cosine from which on two images may be the same; their pictures decide."""
MOST_PAIRS = 5000
"""Pairs whose pictures are looked at; a network that tells nothing apart proposes any number."""
BLOCK = 256


@dataclass(frozen=True)
class Survey:
    """Results for the images that asked, in the order of ``asked`` (ids).

    - ``near``: ids (q, k) of their neighbours, best first, -1 where there are fewer; ``likeness``: cosines (q, k);
    - ``labels``: class of every id; ``recall``: recall@1 of each class that asked; ``whole``: whether every image asked.
    """

    asked: NDArray[np.int64]
    near: NDArray[np.int64]
    likeness: NDArray[np.float32]
    labels: dict[int, str] = field(repr=False)
    recall: dict[str, float]
    whole: bool

    def worst(self, count: int) -> list[int]:
        """Places in ``asked`` of the queries that fail worst: fewest right neighbours, then surest of the wrong one."""
        own = np.array([[self.labels.get(int(other), "") for other in row] for row in self.near], object)
        mine = np.array([self.labels[int(number)] for number in self.asked], object)
        known = np.array([bool(label) for label in mine], bool)
        right = (own == mine[:, None]).sum(1) if len(mine) else np.zeros(0, int)
        order = np.lexsort((-self.likeness[:, 0], right)) if len(mine) else np.zeros(0, int)
        failing = [int(place) for place in order if known[place] and own[place, 0] != mine[place]]
        return failing[:count]

    def doubtful(self, count: int) -> list[tuple[int, str, float]]:
        """Images that look like another class: place in ``asked``, that class, share of its votes; surest first."""
        found = []
        for place, number in enumerate(self.asked):
            mine = self.labels[int(number)]
            votes: dict[str, float] = {}
            for other, likeness in zip(self.near[place], self.likeness[place], strict=True):
                label = self.labels.get(int(other), "")
                if label:
                    votes[label] = votes.get(label, 0.0) + max(float(likeness), 0.0)
            total = sum(votes.values())
            if not mine or not total:
                continue
            best = max(votes, key=lambda label: votes[label])
            if best != mine and votes[best] / total >= 0.5 and votes.get(mine, 0.0) / total <= 0.1:
                found.append((place, best, votes[best] / total))
        return sorted(found, key=lambda entry: -entry[2])[:count]

    def close(self, most: int = MOST_PAIRS) -> list[tuple[int, int, float]]:
        """Pairs of ids that may be the same image, by their cosine."""
        seen: dict[tuple[int, int], float] = {}
        for number, others, likeness in zip(self.asked.tolist(), self.near, self.likeness, strict=True):
            for other, cosine in zip(others.tolist(), likeness.tolist(), strict=True):
                if other >= 0 and cosine >= SAME:
                    seen[(min(number, other), max(number, other))] = cosine
        return [(*pair, cosine) for pair, cosine in sorted(seen.items(), key=lambda entry: -entry[1])][:most]


def doubles(index: Index, found: Survey) -> list[tuple[int, int, float]]:
    """Pairs of ids that are the same image, by their cosine: a network may give different pictures one place."""
    near = found.close()
    numbers = sorted({number for one, other, _ in near for number in (one, other)})
    places = {number: place for place, number in enumerate(numbers)}
    prints = taken(of_index(index, numbers), len(numbers), lambda done, total: None)
    same = confirmed(prints, [(places[one], places[other]) for one, other, _ in near])
    return [
        (one, other, cosine)
        for one, other, cosine in near
        if (places[one], places[other]) in same or index.thumbnail(one) == index.thumbnail(other)
    ]


def survey(index: Index, most: int = MOST_QUERIES, near: int = NEAR) -> Survey:
    """Let at most ``most`` images, drawn evenly, ask for their neighbours."""
    numbers, vectors = index.vectors()
    labels = {row.id: row.label for row in index.rows()}
    chosen = np.arange(len(numbers))
    if len(numbers) > most:
        chosen = np.sort(np.random.default_rng(0).choice(len(numbers), most, replace=False))
    k = min(near, max(len(numbers) - 1, 0))
    found = np.full((len(chosen), near), -1, np.int64)
    likeness = np.full((len(chosen), near), -1, np.float32)
    for begin in range(0, len(chosen) if k else 0, BLOCK):
        rows = chosen[begin : begin + BLOCK]
        cosines = vectors[rows] @ vectors.T
        cosines[np.arange(len(rows)), rows] = -np.inf  # an image is not its own neighbour
        best = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        scores = np.take_along_axis(cosines, best, 1)
        order = np.lexsort((best, -scores), axis=1)
        found[begin : begin + BLOCK, :k] = numbers[np.take_along_axis(best, order, 1)]
        likeness[begin : begin + BLOCK, :k] = np.take_along_axis(scores, order, 1)
    asked = numbers[chosen]
    tallies: dict[str, list[bool]] = {}
    for number, others in zip(asked.tolist(), found.tolist(), strict=True):
        if labels[number]:
            tallies.setdefault(labels[number], []).append(labels.get(others[0], "") == labels[number])
    recall = {label: float(np.mean(right)) for label, right in sorted(tallies.items())}
    return Survey(asked, found, likeness, labels, recall, len(chosen) == len(numbers))

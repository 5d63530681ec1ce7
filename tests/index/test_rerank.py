"""Second looks against plain loops, and what they are for: they help where first results are mostly right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nearkin.index.rerank import expand, reciprocal


def points(seed: int, classes: int, images: int, spread: float, dim: int = 6) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(classes, dim))
    labels = np.repeat(np.arange(classes), images)
    vectors = centres[labels] + spread * random.normal(size=(len(labels), dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels


@pytest.mark.parametrize("power", [0.0, 3.0])
def test_expansion_by_hand(power: float) -> None:
    vectors, _ = points(0, 4, 5, 0.6)
    queries, gallery = vectors[:3], vectors[3:]
    found = expand(queries, gallery, k=2, power=power)
    for row, query in enumerate(queries.astype(float)):
        cosines = sorted(
            ((float(query @ other), number) for number, other in enumerate(gallery.astype(float))), reverse=True
        )
        mixed = query.copy()
        for cosine, number in cosines[:2]:
            mixed += max(cosine, 0.0) ** power * gallery[number]
        np.testing.assert_allclose(found[row], mixed / math.sqrt(mixed @ mixed), atol=1e-6)


def plainly(vectors: np.ndarray, queries: int, k: int, local: int, balance: float) -> np.ndarray:
    """The definition with sets and loops."""
    n = len(vectors)
    exact = vectors.astype(float)
    distance = [[0.0 if i == j else max(0.0, 2 - 2 * float(exact[i] @ exact[j])) for j in range(n)] for i in range(n)]
    distance = [[value / max(row) for value in row] for row in distance]
    near = [sorted(range(n), key=lambda j, i=i: (distance[i][j], j)) for i in range(n)]

    def mutual(i: int, k: int) -> set[int]:
        return {j for j in near[i][: k + 1] if i in near[j][: k + 1]}

    encoded = []
    for i in range(n):
        members = mutual(i, k)
        for j in mutual(i, k):
            smaller = mutual(j, round(k / 2))
            if len(smaller & mutual(i, k)) >= 2 / 3 * len(smaller) - 1e-9:
                members = members | smaller
        shares = {j: math.exp(-distance[i][j]) for j in members}
        encoded.append({j: share / sum(shares.values()) for j, share in shares.items()})
    averaged = []
    for i in range(n):
        mean = dict.fromkeys(range(n), 0.0)
        for j in near[i][:local]:
            for m, share in encoded[j].items():
                mean[m] += share / local
        averaged.append(mean)
    result = np.empty((queries, n))
    for i in range(queries):
        for j in range(n):
            low = sum(min(averaged[i][m], averaged[j][m]) for m in range(n))
            high = sum(max(averaged[i][m], averaged[j][m]) for m in range(n))
            result[i, j] = (1 - balance) * (1 - low / high) + balance * distance[i][j]
    return result


@pytest.mark.parametrize(("seed", "k", "local"), [(0, 4, 3), (1, 6, 1), (2, 50, 6)])
def test_reciprocal_neighbours_by_hand(seed: int, k: int, local: int) -> None:
    vectors, _ = points(seed, 4, 5, 0.7)
    np.testing.assert_allclose(
        reciprocal(vectors, 6, k=k, local=local), plainly(vectors, 6, min(k, 19), local, 0.3), atol=1e-9
    )


def test_they_help_where_first_results_are_mostly_right() -> None:
    """Mean average precision over all queries, each asking all others."""

    def quality(distance: np.ndarray, labels: np.ndarray) -> float:
        found = []
        for row in range(len(labels)):
            order = [column for column in np.argsort(distance[row], kind="stable") if column != row]
            right = labels[order] == labels[row]
            found.append((np.cumsum(right)[right] / (np.flatnonzero(right) + 1)).mean())
        return float(np.mean(found))

    vectors, labels = points(3, 8, 12, 0.45)
    plain = -(vectors @ vectors.T)
    again = reciprocal(vectors, len(vectors), k=10, local=4)
    wider = np.stack(
        [-(expand(vectors[i : i + 1], np.delete(vectors, i, 0), k=4) @ vectors.T)[0] for i in range(len(vectors))]
    )
    before = quality(plain, labels)
    assert quality(again, labels) > before + 0.02 and quality(wider, labels) > before + 0.02

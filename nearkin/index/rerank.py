"""Second looks at what a search found: query expansion and k-reciprocal neighbours.

Both take the first few results at their word and search again with what they say, so they help where the first results are
mostly right and hurt where they are not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]

METHODS = ("none", "expansion", "reciprocal")


def expand(queries: Vectors, gallery: Vectors, k: int = 5, power: float = 3.0) -> Vectors:
    """Each query (q, d) with its ``k`` nearest of the gallery (n, d) added, weighted by cosine to a ``power``, at length 1.

    Average query expansion (Chum 2007) for power 0, weighted (Radenovic 2018) above. All vectors are of length 1.

    >>> expand(np.eye(2, dtype=np.float32)[:1], np.array([[0.6, 0.8], [0, 1]], np.float32), k=1, power=0).round(2)
    array([[0.89, 0.45]], dtype=float32)
    """
    if not len(gallery):
        return queries
    k = min(k, len(gallery))
    similarity = queries @ gallery.T
    near = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    weights = np.clip(np.take_along_axis(similarity, near, 1), 0, None) ** power
    mixed = queries + np.einsum("qk,qkd->qd", weights, gallery[near])
    length = np.linalg.norm(mixed, axis=1, keepdims=True)
    return np.divide(mixed, length, out=queries.copy(), where=length > 0).astype(np.float32)


def reciprocal(vectors: Vectors, queries: int, k: int = 20, local: int = 6, balance: float = 0.3) -> Floats:
    """New distances (queries, n) from the first ``queries`` rows to all rows of ``vectors`` (n, d).

    k-reciprocal encoding (Zhong 2017): two images are close if they are among each other's ``k`` nearest, and if so are
    their neighbours. Each image becomes a vector of weights over its reciprocal neighbours, averaged over its ``local``
    nearest; the distance is one minus the overlap of two such vectors, mixed with the plain one by ``balance``.
    """
    n = len(vectors)
    k, local = min(k, n - 1), max(1, min(local, n))
    plain = _distances(vectors)
    order = np.argsort(plain, axis=1, kind="stable")
    wide, narrow = _mutual(order, k), _mutual(order, max(1, round(k / 2)))
    weights = np.zeros((n, n))
    for row in range(n):
        members = wide[row].copy()
        for other in np.flatnonzero(wide[row]):
            if 3 * (narrow[other] & wide[row]).sum() >= 2 * narrow[other].sum():
                members |= narrow[other]
        shares = np.exp(-plain[row, members])
        weights[row, members] = shares / shares.sum()
    if local > 1:
        weights = weights[order[:, :local]].mean(1)
    overlap = np.empty((queries, n))
    for row in range(queries):
        shared = np.minimum(weights[row], weights).sum(1)
        overlap[row] = shared / np.maximum(2 - shared, 1e-12)  # each row sums to 1
    return (1 - balance) * (1 - overlap) + balance * plain[:queries]


def _distances(vectors: Vectors) -> Floats:
    """Squared distances, each row divided by its largest."""
    points = np.asarray(vectors, np.float64)
    found = np.clip(2 - 2 * points @ points.T, 0, None)
    np.fill_diagonal(found, 0)
    return found / np.maximum(found.max(1, keepdims=True), 1e-12)


def _mutual(order: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    """Which images are among each other's k nearest (each image is its own nearest)."""
    near = np.zeros(order.shape, bool)
    np.put_along_axis(near, order[:, : k + 1], True, 1)
    return near & near.T

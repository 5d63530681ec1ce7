"""The nearest vectors of many, exactly, a block at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

BLOCK = 1 << 16

Vectors = NDArray[np.float32]
Numbers = NDArray[np.int64]


def nearest(
    queries: Vectors, blocks: Iterable[tuple[Vectors, Numbers, NDArray[np.bool_] | None]], k: int
) -> tuple[Numbers, Vectors]:
    """Numbers (q, k) and cosines (q, k) of the rows nearest to each query, best first, equal ones by number.

    ``blocks``: vectors (n, dim), their numbers (n,), and which of them count, None for all. Where fewer than k rows
    count, the rest is -1 and -inf.
    """
    count = len(queries)
    best = np.full((count, k), -np.inf, np.float32)
    found = np.full((count, k), -1, np.int64)
    for vectors, numbers, counts in blocks:
        for begin in range(0, len(vectors), BLOCK):
            part = slice(begin, begin + BLOCK)
            scores = _products(queries, vectors[part])
            if counts is not None:
                scores[:, ~counts[part]] = -np.inf
            known = np.broadcast_to(numbers[part], scores.shape)
            best, found = _merge(best, found, *_top(scores, known, k), k)
    found[np.isneginf(best)] = -1
    return found, best


def _products(queries: Vectors, vectors: Vectors) -> Vectors:
    """Inner products (q, n) by torch: the threads of NumPy's library, still turning for a while after a product, would
    slow down the network that embeds the next query tenfold."""
    found: Vectors = torch.mm(torch.from_numpy(queries), torch.from_numpy(np.asarray(vectors)).T).numpy()
    return found


def _top(scores: Vectors, numbers: Numbers, k: int) -> tuple[Vectors, Numbers]:
    """The k best of each row, not in order; of equal ones at the edge those with lower numbers."""
    if scores.shape[1] <= k:
        return scores, numbers
    edge = np.partition(scores, -k, axis=1)[:, -k]
    chosen = scores >= edge[:, None]
    if (chosen.sum(1) == k).all():  # no ties at the edge
        places = np.argpartition(scores, -k, axis=1)[:, -k:]
    else:
        places = np.lexsort((numbers, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, places, 1), np.take_along_axis(numbers, places, 1)


def _merge(best: Vectors, found: Numbers, scores: Vectors, numbers: Numbers, k: int) -> tuple[Vectors, Numbers]:
    scores, numbers = np.concatenate([best, scores], 1), np.concatenate([found, numbers], 1)
    order = np.lexsort((numbers, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(numbers, order, 1)

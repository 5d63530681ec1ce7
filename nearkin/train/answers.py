"""What a finished run keeps about each query of its test set: pairs of runs are compared query by query."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nearkin import checkpoint, evaluation
from nearkin.results import QUERIES, SIMILARITIES
from nearkin.vectors import unit

NEAREST = 8
BINS = 100
FINEST = 2**12
"""Of so many parts a step may be: 5e-6 of a cosine, well above what float32 rounds off."""
BULK = 0.99
LEAST, MOST = 25, 1000
"""The steps that most pairs should spread over, and all pairs may."""
ROWS = 512


def write(
    folder: Path,
    vectors: Tensor,
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    query: Tensor | None,
    ks: Iterable[int],
) -> None:
    """Write ``queries.safetensors`` (measures, nearest rows) and ``similarities.json`` (a histogram of pairs)."""
    from safetensors.numpy import save

    wide = min(NEAREST, len(labels) - 1 if query is None else int((~query).sum()))
    found = evaluation.per_query(vectors, labels, ks, query, metrics=("recall", "r_precision", "map@r"), nearest=wide)
    arrays: dict[str, Any] = {
        "rows": found.rows.cpu().numpy(),
        "labels": found.labels.cpu().numpy(),
        "nearest": found.nearest.cpu().numpy().astype(np.int32),
        "similarity": found.similarity.float().cpu().numpy(),
        **{name: value.float().cpu().numpy() for name, value in found.values.items()},
    }
    facts = {"class_names": json.dumps(class_names)}
    checkpoint.replace(folder / QUERIES, save(arrays, facts))
    checkpoint.replace(folder / SIMILARITIES, json.dumps(similarities(vectors, labels)).encode())


def similarities(vectors: Tensor, labels: NDArray[np.int64]) -> dict[str, list[float]]:
    """How often each similarity comes among pairs of one class and among pairs of two.

    On a hundred steps from -1 to 1; where most pairs lie in a few of these, the steps are halved until they do not, and
    only those with pairs are kept.

    >>> found = similarities(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 0, 1]))
    >>> sum(found["positive"]), sum(found["negative"])
    (1.0, 2.0)
    """
    points, classes = unit(vectors.float()), torch.from_numpy(labels).to(vectors.device)
    bins = BINS * FINEST
    counts = torch.zeros(2, bins, dtype=torch.float64, device=vectors.device)
    columns = torch.arange(len(points), device=vectors.device)
    for begin in range(0, len(points), ROWS):
        block = points[begin : begin + ROWS] @ points.T
        rows = columns[begin : begin + ROWS, None]
        same = classes[begin : begin + ROWS, None] == classes
        step = ((block + 1) * (bins / 2)).long().clamp_(0, bins - 1) + same * bins
        counts += torch.bincount(step[columns > rows], minlength=2 * bins).view(2, bins)  # each pair once
    return _coarser(counts.cpu().numpy())


def _coarser(counts: NDArray[np.float64]) -> dict[str, list[float]]:
    """A histogram on the finest steps (2, n), on steps as fine as its range asks for."""
    total = counts.sum(0)
    joined, (first, last) = _joined(total), (0, total.size - 1)
    if joined < FINEST:
        first, last = np.flatnonzero(total)[[0, -1]]
    first, last = first // joined, last // joined + 1
    negative, positive = counts.reshape(2, -1, joined).sum(2)[:, first:last]
    edges = (np.arange(first, last + 1) * (2 * joined / total.size) - 1).round(13)
    return {"edges": edges.tolist(), "positive": positive.tolist(), "negative": negative.tolist()}


def _joined(total: NDArray[np.float64]) -> int:
    """How many of the finest steps make one: a power of two, so that histograms of several runs can be added."""
    used, rest = np.flatnonzero(total), (1 - BULK) / 2 * total.sum()
    joined = FINEST
    if len(used):
        below = np.cumsum(total)
        bulk = np.searchsorted(below, below[-1] - rest) - np.searchsorted(below, rest, "right") + 1
        while joined > 1 and bulk < LEAST * joined and used[-1] - used[0] < MOST * joined / 2:
            joined //= 2
    return joined

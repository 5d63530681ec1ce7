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
    """How often each similarity comes among pairs of one class and among pairs of two, on a hundred steps from -1 to 1.

    >>> found = similarities(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 0, 1]))
    >>> sum(found["positive"]), sum(found["negative"])
    (1.0, 2.0)
    """
    points, classes = unit(vectors.float()), torch.from_numpy(labels).to(vectors.device)
    counts = torch.zeros(2, BINS, dtype=torch.float64, device=vectors.device)
    columns = torch.arange(len(points), device=vectors.device)
    for begin in range(0, len(points), ROWS):
        block = points[begin : begin + ROWS] @ points.T
        rows = columns[begin : begin + ROWS, None]
        same = classes[begin : begin + ROWS, None] == classes
        step = ((block + 1) * (BINS / 2)).long().clamp_(0, BINS - 1) + same * BINS
        counts += torch.bincount(step[columns > rows], minlength=2 * BINS).view(2, BINS)  # each pair once
    edges = np.linspace(-1, 1, BINS + 1).round(4).tolist()
    return {"edges": edges, "positive": counts[1].tolist(), "negative": counts[0].tolist()}

"""Retrieval measures of every single query: what means, and results per class, are made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from nearkin.evaluation.neighbours import MEMORY, ranked_blocks
from nearkin.evaluation.retrieval import hits, relevant_count


def per_query(
    queries: Tensor,
    labels: Tensor,
    gallery: Tensor,
    gallery_labels: Tensor,
    *,
    self_index: Tensor | None,
    ks: Sequence[int],
    metrics: Collection[str],
    memory: int = MEMORY,
) -> dict[str, Tensor]:
    """Rank the gallery for each query once and read every measure off that ranking, block by block.

    ``queries`` (n, d) and ``gallery`` (m, d) are unit vectors. Returns (n,) float64 values under "recall@1",
    ..., "r_precision", "map@r", "map", as far as named in ``metrics``, NaN for queries without a relevant
    item.

    >>> points = torch.eye(3)[[0, 0, 1]]
    >>> labels, own = torch.tensor([4, 4, 5]), torch.arange(3)
    >>> per_query(points, labels, points, labels, self_index=own, ks=(1,), metrics=["recall"])
    {'recall@1': tensor([1., 1., nan], dtype=torch.float64)}
    """
    if not {"recall", "r_precision", "map@r", "map"} & set(metrics):
        return {}
    relevant = relevant_count(labels, gallery_labels, self_index)
    depth = max(ks) if "recall" in metrics else 1
    if {"r_precision", "map@r"} & set(metrics):
        depth = max(depth, int(relevant.max()))
    if "map" in metrics:
        depth = max(depth, len(gallery))
    parts: dict[str, list[Tensor]] = {}
    for rows, _, index in ranked_blocks(queries, gallery, depth, self_index=self_index, memory=memory):
        found = hits(index, labels[rows], gallery_labels, relevant[rows])
        values: dict[str, Tensor] = {}
        if "recall" in metrics:
            values |= {f"recall@{k}": recall for k, recall in zip(ks, found.recall(ks).T, strict=True)}
        if "r_precision" in metrics:
            values["r_precision"] = found.r_precision()
        if "map@r" in metrics:
            values["map@r"] = found.map_at_r()
        if "map" in metrics:
            values["map"] = found.average_precision()
        for name, value in values.items():
            parts.setdefault(name, []).append(value)
    return {name: torch.cat(part) for name, part in parts.items()}

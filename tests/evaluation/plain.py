"""Neighbours, retrieval and clustering measures from their definitions, as loops over Python numbers."""

from __future__ import annotations

import math
from itertools import combinations, product

import torch
from hypothesis import strategies as st
from torch import Tensor

# Four coordinates of +-1: length 2, so unit vectors and all their inner products are exact binary fractions.
CORNERS = list(product([-1.0, 1.0], repeat=4))


def corners(rows: int) -> st.SearchStrategy[Tensor]:
    """(rows, 4) vectors from few different ones: most similarities are tied."""
    return st.lists(st.sampled_from(CORNERS[:6]), min_size=rows, max_size=rows).map(torch.tensor)


def some_labels(rows: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-2, 3), min_size=rows, max_size=rows)


def cosine(a: list[float], b: list[float]) -> float:
    norm = math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(x * x for x in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0


def ranking(
    queries: list[list[float]], gallery: list[list[float]], own: list[int] | None = None
) -> tuple[list[list[float]], list[list[int]]]:
    """Similarities and gallery rows, most similar first, lower row on ties, own row left out.

    Cosines that agree to 12 decimals are ties.
    """
    similarities, rows = [], []
    for i, query in enumerate(queries):
        scored = [(-round(cosine(query, item), 12), j) for j, item in enumerate(gallery) if own is None or own[i] != j]
        scored.sort()
        similarities.append([-score for score, _ in scored])
        rows.append([j for _, j in scored])
    return similarities, rows


def measures(
    rows: list[list[int]], labels: list[int], gallery_labels: list[int], ks: list[int]
) -> tuple[dict[str, float], int]:
    """Mean of each measure over the queries with a relevant item, and how many queries have none."""
    sums: dict[str, float] = {}
    answered = 0
    for row, label in zip(rows, labels, strict=True):
        relevant = [gallery_labels[j] == label for j in row]
        total = sum(relevant)
        if not total:
            continue
        answered += 1
        values = {f"recall@{k}": float(any(relevant[:k])) for k in ks}
        values["r_precision"] = sum(relevant[:total]) / total
        precision = [sum(relevant[: place + 1]) / (place + 1) for place in range(len(row))]
        values["map@r"] = sum(precision[p] for p in range(total) if relevant[p]) / total
        values["map"] = sum(precision[p] for p in range(len(row)) if relevant[p]) / total
        for name, value in values.items():
            sums[name] = sums.get(name, 0.0) + value
    return {name: value / answered for name, value in sums.items()}, len(rows) - answered


def pair_f1(a: list[int], b: list[int]) -> float:
    pairs = [(a[i] == a[j], b[i] == b[j]) for i, j in combinations(range(len(a)), 2)]
    both = sum(one and other for one, other in pairs)
    return 2 * both / sum(one + other for one, other in pairs) if any(map(any, pairs)) else 0.0

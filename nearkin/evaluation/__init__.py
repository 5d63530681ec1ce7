"""How good an embedding is: exact neighbours, retrieval measures, clustering measures.

Rank once, then every measure is a function of the ranking; memory is bounded whatever the size of the data.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from nearkin import checks
from nearkin.evaluation.clustering import Clusters, kmeans, nmi, pair_f1
from nearkin.evaluation.inputs import Labels, Vectors, label_tensor, tensor, vector_tensor, whole
from nearkin.evaluation.neighbours import MEMORY, neighbours
from nearkin.evaluation.per_query import per_query
from nearkin.evaluation.retrieval import (
    check_answerable,
    map_at_r,
    mean_average_precision,
    r_precision,
    recall_at_k,
    relevant_count,
)
from nearkin.pairs import unit

__all__ = [
    "METRICS",
    "Clusters",
    "evaluate",
    "kmeans",
    "map_at_r",
    "mean_average_precision",
    "neighbours",
    "nmi",
    "pair_f1",
    "r_precision",
    "recall_at_k",
]

# From cheap to dear: "map" sorts the whole gallery for each query, "nmi" and "f1" share one k-means.
METRICS = ("recall", "r_precision", "map@r", "map", "nmi", "f1")


def evaluate(
    embeddings: Vectors,
    labels: Labels,
    ks: Iterable[int] = (1, 2, 4, 8),
    query: Tensor | Iterable[bool] | None = None,
    *,
    metrics: Iterable[str] = METRICS,
    seed: int = 0,
    memory: int = MEMORY,
) -> dict[str, float]:
    """Measure ``embeddings`` (n, d) against ``labels`` (n,).

    Retrieval is by cosine similarity, ties to the lower row. ``query`` None: every row asks all others.
    ``query`` (n,) boolean: those rows ask, the other rows are the gallery (In-Shop). Clustering is k-means
    (see ``kmeans``, with ``seed``) on the unit vectors of all rows, k = the number of classes.

    Returns shares between 0 and 1 under "recall@k" for each k, "r_precision", "map@r", "map", "nmi", "f1", as
    far as named in ``metrics`` (any of METRICS; leave out "map", "nmi", "f1" to save time), and the counts
    "queries" (measured) and "left_out" (no relevant item in the gallery; no part of any retrieval measure).
    ``memory``: bytes to work with beyond the inputs.

    >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> evaluate(embeddings, [0, 0, 1, 1], ks=(1,), metrics=("recall", "nmi"))
    {'recall@1': 1.0, 'nmi': 1.0, 'queries': 4, 'left_out': 0}
    """
    vectors = vector_tensor("embeddings", embeddings, least=2)
    classes = label_tensor("labels", labels, len(vectors), "embeddings", vectors.device)
    wanted = _names(metrics)
    depths = [whole("evaluate", "k", k, 1) for k in ks]
    if "recall" in wanted and not depths:
        raise ValueError('ks must hold at least one number, got none; leave "recall" out of metrics instead.')
    seed, memory = whole("evaluate", "seed", seed, 0), whole("evaluate", "memory", memory, 1)
    asks = None if query is None else _query_mask(query, len(vectors), vectors.device)

    scaled = unit(vectors)
    if asks is None:
        queries = gallery = scaled
        query_classes = gallery_classes = classes
        self_index = torch.arange(len(vectors), device=vectors.device)
    else:
        queries, gallery = scaled[asks], scaled[~asks]
        query_classes, gallery_classes = classes[asks], classes[~asks]
        self_index = None
    relevant = relevant_count(query_classes, gallery_classes, self_index)
    check_answerable(relevant)

    values = per_query(
        queries,
        query_classes,
        gallery,
        gallery_classes,
        self_index=self_index,
        ks=depths,
        metrics=wanted,
        memory=memory,
    )
    result = {name: float(value[relevant > 0].mean()) for name, value in values.items()}
    if {"nmi", "f1"} & set(wanted):
        clusters = kmeans(scaled, len(torch.unique(classes)), seed=seed, memory=memory).assignment
        agreement = {"nmi": nmi, "f1": pair_f1}
        result |= {name: agreement[name](classes, clusters) for name in agreement if name in wanted}
    answered = int((relevant > 0).sum())
    return result | {"queries": answered, "left_out": len(relevant) - answered}


def _names(metrics: Iterable[str]) -> list[str]:
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        if name not in METRICS:
            raise ValueError(checks.unknown("metric", name, METRICS))
    return names


def _query_mask(query: Tensor | Iterable[bool], rows: int, device: torch.device) -> Tensor:
    mask = tensor("query", query, f"a boolean mask of shape ({rows},)").to(device)
    if mask.dtype != torch.bool or tuple(mask.shape) != (rows,):
        message = (
            f"query must be a boolean mask of shape ({rows},), got {mask.dtype} of shape "
            f"{tuple(mask.shape)}; mark each row of embeddings as query (True) or gallery (False)."
        )
        raise ValueError(message)
    if bool(mask.all()) or not bool(mask.any()):
        message = (
            f"query must mark some rows as queries and leave some as gallery, got {int(mask.sum())} "
            f"queries of {rows} rows; pass None to let every row ask all others."
        )
        raise ValueError(message)
    return mask

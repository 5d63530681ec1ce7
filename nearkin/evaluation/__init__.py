"""How good an embedding is: exact neighbours, retrieval measures, clustering measures.

Rank once, then every measure is a function of the ranking; memory is bounded whatever the size of the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

import torch
from torch import Tensor

from nearkin import checks
from nearkin.evaluation.agreement import nmi, nmi_per_class, pair_f1, pair_f1_per_class
from nearkin.evaluation.clustering import Clusters, kmeans
from nearkin.evaluation.inputs import Labels, Vectors, label_tensor, several, vector_tensor, whole
from nearkin.evaluation.neighbours import MEMORY, neighbours
from nearkin.evaluation.queries import RETRIEVAL, PerQuery, asking_and_gallery, chosen, join, metric_names, per_query
from nearkin.evaluation.retrieval import map_at_r, mean_average_precision, r_precision, recall_at_k
from nearkin.vectors import unit

__all__ = [
    "METRICS",
    "RETRIEVAL",
    "Clusters",
    "PerQuery",
    "evaluate",
    "join",
    "kmeans",
    "map_at_r",
    "mean_average_precision",
    "neighbours",
    "nmi",
    "nmi_per_class",
    "pair_f1",
    "pair_f1_per_class",
    "per_query",
    "r_precision",
    "recall_at_k",
]

# "nmi" and "f1" share one k-means, which is dearer than all of retrieval.
METRICS = (*RETRIEVAL, "nmi", "f1")


@overload
def evaluate(
    embeddings: Vectors,
    labels: Labels,
    ks: int | Iterable[int] = ...,
    query: Tensor | Iterable[bool] | None = ...,
    *,
    metrics: Iterable[str] = ...,
    per_class: Literal[False] = ...,
    seed: int = ...,
    memory: int = ...,
    answers: PerQuery | None = ...,
) -> dict[str, float]: ...


@overload
def evaluate(
    embeddings: Vectors,
    labels: Labels,
    ks: int | Iterable[int] = ...,
    query: Tensor | Iterable[bool] | None = ...,
    *,
    metrics: Iterable[str] = ...,
    per_class: bool,
    seed: int = ...,
    memory: int = ...,
    answers: PerQuery | None = ...,
) -> dict[str, Any]: ...


def evaluate(
    embeddings: Vectors,
    labels: Labels,
    ks: int | Iterable[int] = (1, 2, 4, 8),
    query: Tensor | Iterable[bool] | None = None,
    *,
    metrics: Iterable[str] = METRICS,
    per_class: bool = False,
    seed: int = 0,
    memory: int = MEMORY,
    answers: PerQuery | None = None,
) -> dict[str, Any]:
    """Measure ``embeddings`` (n, d) against ``labels`` (n,).

    Retrieval is by cosine similarity in float64, ties to the lower row. ``query`` None: every row asks all others.
    ``query`` (n,) boolean: those rows ask, the other rows are the gallery (In-Shop). Clustering is k-means
    (see ``kmeans``, with ``seed``) on the unit vectors of all rows, k = the number of classes.

    Returns shares between 0 and 1 under "recall@k" for each k, "r_precision", "map@r", "map", "nmi", "f1", as
    far as named in ``metrics`` (any of METRICS; leave out "nmi" and "f1" to save time), and the counts
    "queries" (measured) and "left_out" (no relevant item in the gallery; no part of any retrieval measure).
    ``per_class``: also "per_class", a dict with "classes", the labels in rising order, and under each name from above
    one value per class: the mean over the queries of this class, their number under "queries", and for "nmi" and "f1"
    how well k-means finds this class; None where nothing could be measured.
    ``memory``: bytes to work with beyond the inputs. ``answers``: what ``per_query`` found for all queries of these
    embeddings, where that is known, such as from several processes; those of another model cannot be told apart.

    >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> evaluate(embeddings, [0, 0, 1, 1], ks=(1,), metrics=("recall", "nmi"))
    {'recall@1': 1.0, 'nmi': 1.0, 'queries': 4, 'left_out': 0}
    """
    vectors = vector_tensor("embeddings", embeddings, least=2)
    classes = label_tensor("labels", labels, len(vectors), "embeddings", vectors.device)
    wanted = metric_names(metrics, METRICS)
    depths = several("evaluate", "ks", ks)
    seed, memory = whole("evaluate", "seed", seed, 0, checks.SEED.high), whole("evaluate", "memory", memory, 1)
    retrieval = [name for name in RETRIEVAL if name in wanted]
    if answers is None:
        found = per_query(vectors, classes, depths, query, metrics=retrieval, memory=memory)
    else:
        rows = asking_and_gallery(query, len(vectors), vectors.device)[0]
        found = chosen(answers, rows, classes[rows], depths, retrieval)
    means = found.means()
    result: dict[str, Any] = {name: means[name] for name in found.values}
    names = torch.unique(classes)
    each: dict[str, Any] = {"classes": names.tolist(), **found.per_class(names)} if per_class else {}
    if {"nmi", "f1"} & set(wanted):
        clusters = kmeans(unit(vectors), len(names), seed=seed, memory=memory).assignment
        if "nmi" in wanted:
            result["nmi"] = nmi(classes, clusters)
            each["nmi"] = nmi_per_class(classes, clusters) if per_class else None
        if "f1" in wanted:
            result["f1"] = pair_f1(classes, clusters)
            each["f1"] = pair_f1_per_class(classes, clusters) if per_class else None
    result |= {name: int(means[name]) for name in ("queries", "left_out")}
    return result | {"per_class": each} if per_class else result

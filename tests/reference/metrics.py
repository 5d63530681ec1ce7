"""Retrieval and clustering metrics in plain loops."""

import math
from collections.abc import Sequence

from torch import Tensor

from .samples import Samples


def relevance(
    queries: Tensor,
    labels: Sequence[int],
    gallery: Tensor | None = None,
    gallery_labels: Sequence[int] | None = None,
    self_index: Sequence[int] | None = None,
) -> list[list[bool]]:
    """Per query: is the item at rank 1, 2, ... of the same class?

    Items are ordered by falling cosine similarity, ties by rising index, the query's own column left out.
    """
    points = Samples(
        queries.detach().double(),
        [int(label) for label in labels],
        gallery=None if gallery is None else gallery.detach().double(),  # type: ignore[arg-type]
        gallery_labels=None if gallery_labels is None else [int(y) for y in gallery_labels],  # type: ignore[arg-type]
        self_index=None if self_index is None else [int(j) for j in self_index],  # type: ignore[arg-type]
    )
    result = []
    for i in points.rows:
        order = sorted((-points.cosine(i, j).item(), j) for j in points.others(i))
        result.append([points.same(i, j) for _, j in order])
    return result


def counted(
    queries: Tensor,
    labels: Sequence[int],
    gallery: Tensor | None = None,
    gallery_labels: Sequence[int] | None = None,
    self_index: Sequence[int] | None = None,
) -> list[list[bool]]:
    """`relevance` of the queries that have a relevant item; the others are left out of every metric."""
    return [hits for hits in relevance(queries, labels, gallery, gallery_labels, self_index) if any(hits)]


def average(values: list[float]) -> float:
    """Mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def recall_at_k(
    queries: Tensor,
    labels: Sequence[int],
    k: int,
    gallery: Tensor | None = None,
    gallery_labels: Sequence[int] | None = None,
    self_index: Sequence[int] | None = None,
) -> float:
    """Share of queries with at least one same-class item among the k nearest."""
    rows = counted(queries, labels, gallery, gallery_labels, self_index)
    return average([1.0 if any(hits[:k]) else 0.0 for hits in rows])


def r_precision(
    queries: Tensor,
    labels: Sequence[int],
    gallery: Tensor | None = None,
    gallery_labels: Sequence[int] | None = None,
    self_index: Sequence[int] | None = None,
) -> float:
    """Share of same-class items among the R nearest, R = number of relevant items of the query."""
    rows = counted(queries, labels, gallery, gallery_labels, self_index)
    return average([sum(hits[: sum(hits)]) / sum(hits) for hits in rows])


def map_at_r(
    queries: Tensor,
    labels: Sequence[int],
    gallery: Tensor | None = None,
    gallery_labels: Sequence[int] | None = None,
    self_index: Sequence[int] | None = None,
) -> float:
    """1/R sum_{k=1..R} (precision at k if the item at rank k is relevant, else 0) (Musgrave 2020)."""
    values = []
    for hits in counted(queries, labels, gallery, gallery_labels, self_index):
        relevant = sum(hits)
        found, value = 0, 0.0
        for rank in range(1, relevant + 1):
            if hits[rank - 1]:
                found += 1
                value += found / rank
        values.append(value / relevant)
    return average(values)


def mean_average_precision(
    queries: Tensor,
    labels: Sequence[int],
    gallery: Tensor | None = None,
    gallery_labels: Sequence[int] | None = None,
    self_index: Sequence[int] | None = None,
) -> float:
    """1/R sum over all ranks k of a relevant item of the precision at k."""
    values = []
    for hits in counted(queries, labels, gallery, gallery_labels, self_index):
        found, value = 0, 0.0
        for rank, hit in enumerate(hits, start=1):
            if hit:
                found += 1
                value += found / rank
        values.append(value / sum(hits))
    return average(values)


def entropy(counts: list[int]) -> float:
    """-sum p log p, natural logarithm."""
    size = sum(counts)
    return -sum(c / size * math.log(c / size) for c in counts if c)


def nmi(labels: Sequence[int], clusters: Sequence[int]) -> float:
    """I(y, g) / ((H(y) + H(g)) / 2); 1 when both entropies are 0, 0 when only one is."""
    size = len(labels)
    by_label = {c: sum(1 for y in labels if y == c) for c in labels}
    by_cluster = {c: sum(1 for g in clusters if g == c) for c in clusters}
    if len(by_label) == 1 and len(by_cluster) == 1:
        return 1.0
    if len(by_label) == 1 or len(by_cluster) == 1:
        return 0.0
    joint: dict[tuple[int, int], int] = {}
    for y, g in zip(labels, clusters, strict=True):
        joint[y, g] = joint.get((y, g), 0) + 1
    information = 0.0
    for (y, g), count in joint.items():
        information += count / size * math.log(size * count / (by_label[y] * by_cluster[g]))
    return information / ((entropy(list(by_label.values())) + entropy(list(by_cluster.values()))) / 2)


def pair_f1(labels: Sequence[int], clusters: Sequence[int]) -> float:
    """F1 over unordered pairs: 2 TP / (2 TP + FP + FN), positive = same cluster, true = same class; 0 of
    nothing.
    """
    both = cluster_only = label_only = 0
    for i in range(len(labels)):
        for j in range(i):
            together, alike = clusters[i] == clusters[j], labels[i] == labels[j]
            both += together and alike
            cluster_only += together and not alike
            label_only += alike and not together
    divisor = 2 * both + cluster_only + label_only
    return 2 * both / divisor if divisor else 0.0

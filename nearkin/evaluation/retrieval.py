"""Retrieval measures. Each is a function of the ranking alone: which places of it hold relevant items.

An item is relevant to a query if it has the query's label and is not the query itself. R is the number of
relevant items in the gallery. A query with R = 0 cannot be answered: it is left out of every measure (NaN
where values are given per query), and ``Hits.left_out`` counts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin import checks
from nearkin.evaluation.inputs import Index, Labels, check_index, index_tensor, label_tensor, tensor, whole


@dataclass(frozen=True)
class Hits:
    """The places of relevant items in the rankings of n queries, and the measures that follow from them.

    - ``ranks`` (h,): places from 1, rising, query after query;
    - ``found`` (n,): how many of these each query has; ``depth``: how many places were ranked;
    - ``relevant`` (n,): R, how many the gallery holds.

    Each measure gives (n,) values in float64, NaN for a query without any relevant item.
    """

    ranks: Tensor
    found: Tensor
    relevant: Tensor
    depth: int

    @property
    def left_out(self) -> int:
        """How many queries have no relevant item."""
        return int((self.relevant == 0).sum())

    def recall(self, ks: Iterable[int]) -> Tensor:
        """(n, len(ks)): 1 if one of the k first places holds a relevant item, else 0."""
        ks = [whole("recall_at_k", "ks", k, 1) for k in ks]
        self._ranked_to(max(ks, default=1), "the largest k")
        start = self.found.cumsum(0) - self.found
        nearest = torch.full_like(self.found, self.depth + 1)
        answered = self.found > 0
        nearest[answered] = self.ranks[start[answered]]
        hit = nearest[:, None] <= torch.tensor(ks, device=nearest.device)
        return self._answered(hit.double())

    def r_precision(self) -> Tensor:
        """(n,): the share of relevant items among the R first places."""
        return self._over_r(torch.ones_like(self.ranks, dtype=torch.float64) * self._within_r())

    def map_at_r(self) -> Tensor:
        """(n,): 1/R times the sum of the precision at those of the R first places with a relevant item."""
        return self._over_r(self._precision() * self._within_r())

    def average_precision(self) -> Tensor:
        """(n,): the mean precision at the places of all relevant items; the whole gallery must be ranked."""
        short = (self.found < self.relevant).nonzero()
        if len(short):
            row = int(short[0])
            message = (
                f"index must rank the whole gallery for average precision, got {self.depth} places with "
                f"{int(self.found[row])} of {int(self.relevant[row])} relevant items of query {row}; "
                f"rank with k = the gallery's size."
            )
            raise ValueError(message)
        return self._over_r(self._precision())

    def _within_r(self) -> Tensor:
        self._ranked_to(int(self.relevant.max()), "the largest number of relevant items")
        return self.ranks <= self.relevant.repeat_interleave(self.found)

    def _precision(self) -> Tensor:
        """At the place of each relevant item: its number among the relevant ones divided by its place."""
        start = self.found.cumsum(0) - self.found
        place = torch.arange(1, len(self.ranks) + 1, device=self.ranks.device)
        return (place - start.repeat_interleave(self.found)).double() / self.ranks

    def _over_r(self, values: Tensor) -> Tensor:
        """Sums of the values of each query, divided by R; added in order, so that runs agree bit for bit."""
        sums = torch.segment_reduce(values, "sum", lengths=self.found, unsafe=True)
        return self._answered(sums / self.relevant.clamp(min=1))

    def _answered(self, values: Tensor) -> Tensor:
        values[self.relevant == 0] = torch.nan
        return values

    def _ranked_to(self, places: int, what: str) -> None:
        if places > self.depth:
            message = f"index must rank at least {what} ({places}) places, got {self.depth}; rank with a larger k."
            raise ValueError(message)


def relevant_count(labels: Tensor, gallery_labels: Tensor, self_index: Tensor | None = None) -> Tensor:
    """R (n,): how many gallery items have the query's label, the query itself not counted.

    >>> relevant_count(torch.tensor([5, 6]), torch.tensor([5, 5, 6]), torch.tensor([0, 2]))
    tensor([1, 0])
    """
    values, counts = torch.unique(gallery_labels, return_counts=True)
    place = torch.searchsorted(values, labels).clamp(max=len(values) - 1)
    count = torch.where(values[place] == labels, counts[place], 0)
    if self_index is not None:
        count -= ((self_index >= 0) & (gallery_labels[self_index.clamp(min=0)] == labels)).long()
    return count


def hits(index: Tensor, labels: Tensor, gallery_labels: Tensor, relevant: Tensor) -> Hits:
    """Where the ranking ``index`` (n, k) of gallery rows (-1: none) holds relevant items."""
    hit = (gallery_labels[index.clamp(min=0)] == labels[:, None]) & (index >= 0)
    return Hits(hit.nonzero()[:, 1] + 1, hit.sum(1), relevant, index.shape[1])


def _checked(index: Index, labels: Labels, gallery_labels: Labels, self_index: Labels | None) -> Hits:
    ranking = tensor("index", index, "integers of shape (queries, places)")
    if ranking.dim() != 2 or ranking.dtype not in checks.INTEGERS or 0 in ranking.shape:
        message = (
            f"index must be integers of shape (queries, places), got {ranking.dtype} of shape "
            f"{tuple(ranking.shape)}; pass what neighbours returned."
        )
        raise ValueError(message)
    ranking, device = ranking.long(), ranking.device
    gallery_classes = label_tensor("gallery_labels", gallery_labels, None, "the gallery", device)
    m = len(gallery_classes)
    check_index("index", ranking, m)
    classes = label_tensor("labels", labels, len(ranking), "index", device)
    own = None if self_index is None else index_tensor("self_index", self_index, len(ranking), m, device)
    if own is not None:
        _check_left_out(ranking, own)
    return hits(ranking, classes, gallery_classes, relevant_count(classes, gallery_classes, own))


def _check_left_out(ranking: Tensor, own: Tensor) -> None:
    """Raise if a query is found by itself, as a search of all vectors by each of them finds it."""
    itself = ((ranking == own[:, None]) & (ranking >= 0)).any(1).nonzero()
    if len(itself):
        row = int(itself[0])
        message = (
            f"index must not hold the query itself where self_index names it, got row {int(own[row])} in the ranking "
            f"of query {row}; rank one place more and drop it, or rank with neighbours(..., self_index=...)."
        )
        raise ValueError(message)


def _reduced(values: Tensor, found: Hits, reduction: str) -> Tensor:
    checks.setting("retrieval", "reduction", reduction, ("mean", "none"))
    if reduction == "none":
        return values
    check_answerable(found.relevant)
    return values[found.relevant > 0].mean(0)


def check_answerable(relevant: Tensor) -> None:
    """Raise if not a single query has a relevant item."""
    if not bool((relevant > 0).any()):
        message = (
            f"labels must give at least one query a relevant item, got none for {len(relevant)} queries; "
            f"check that queries and gallery use the same labels and that some class has two items."
        )
        raise ValueError(message)


def recall_at_k(
    index: Index,
    labels: Labels,
    gallery_labels: Labels,
    ks: Iterable[int],
    *,
    self_index: Labels | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Recall@K: the share of queries with at least one relevant item among the K first places.

    ``index`` (n, k) as ``neighbours`` gives it, ``labels`` (n,), ``gallery_labels`` (m,); ``self_index``
    (n,): the gallery row that is the query itself and was left out of the ranking, so that it is not counted
    as relevant. Returns (len(ks),), or (n, len(ks)) per query with ``reduction="none"`` (NaN for queries left
    out).

    >>> recall_at_k([[1, 0], [0, 1]], [8, 8], [8, 7], (1, 2))
    tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    found = _checked(index, labels, gallery_labels, self_index)
    return _reduced(found.recall(ks), found, reduction)


def r_precision(
    index: Index,
    labels: Labels,
    gallery_labels: Labels,
    *,
    self_index: Labels | None = None,
    reduction: str = "mean",
) -> Tensor:
    """R-precision: the share of relevant items among the R first places, R = number of relevant items.

    Arguments as in ``recall_at_k``; the ranking must hold at least the largest R places.

    >>> r_precision([[0, 1, 2]], [7], [7, 8, 7])
    tensor(0.5000, dtype=torch.float64)
    """
    found = _checked(index, labels, gallery_labels, self_index)
    return _reduced(found.r_precision(), found, reduction)


def map_at_r(
    index: Index,
    labels: Labels,
    gallery_labels: Labels,
    *,
    self_index: Labels | None = None,
    reduction: str = "mean",
) -> Tensor:
    """MAP@R (Musgrave 2020): 1/R times the sum over the R first places of precision where the item is
    relevant.

    Arguments as in ``r_precision``.

    >>> map_at_r([[1, 0, 2]], [7], [7, 8, 7])
    tensor(0.2500, dtype=torch.float64)
    """
    found = _checked(index, labels, gallery_labels, self_index)
    return _reduced(found.map_at_r(), found, reduction)


def mean_average_precision(
    index: Index,
    labels: Labels,
    gallery_labels: Labels,
    *,
    self_index: Labels | None = None,
    reduction: str = "mean",
) -> Tensor:
    """mAP: mean over queries of the mean over all relevant items of the precision at their places.

    Arguments as in ``recall_at_k``; ``index`` must rank the whole gallery (k = m; the query itself may be
    left out). ``evaluate`` forms such rankings block by block, so that no (n, m) matrix is held.

    >>> mean_average_precision([[1, 0, 2]], [7], [7, 8, 7])
    tensor(0.5833, dtype=torch.float64)
    """
    found = _checked(index, labels, gallery_labels, self_index)
    return _reduced(found.average_precision(), found, reduction)

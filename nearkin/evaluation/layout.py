"""Queries and gallery in an order in which every class is one stretch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Who asks whom. Rows are rows of the embeddings; classes stand in the order of their size in the gallery.

    - ``queries`` (q,): rows that ask; ``gallery`` (m,): rows that answer; within a class rows rise;
    - ``start``, ``end`` (q,): the stretch of ``gallery`` that holds the class of each query;
    - ``own``: the queries themselves stand in the gallery (and are no answer to themselves);
    - ``symmetric``: queries and gallery are the same rows in the same order.

    Equal sizes side by side let a block of queries compare with about the same number of relevant items each.
    """

    queries: Tensor
    gallery: Tensor
    start: Tensor
    end: Tensor
    own: bool
    symmetric: bool

    @property
    def relevant(self) -> Tensor:
        """(q,): R, how many relevant items the gallery holds for each query."""
        return self.end - self.start - int(self.own)


def layout(labels: Tensor, queries: Tensor, gallery: Tensor, *, own: bool) -> Layout:
    """Arrange the rows ``queries`` (q,) and ``gallery`` (m,), both rising, of ``labels`` (n,).

    >>> found = layout(torch.tensor([7, 5, 7, 7, 5, 6]), torch.arange(6), torch.arange(6), own=True)
    >>> found.gallery.tolist(), found.relevant.tolist(), found.symmetric
    ([5, 1, 4, 0, 2, 3], [0, 1, 1, 2, 2, 2], True)
    """
    names, classes = torch.unique(labels, return_inverse=True)
    sizes = torch.bincount(classes[gallery], minlength=len(names))
    by_size = sizes.argsort(stable=True)
    place = torch.empty_like(by_size)
    place[by_size] = torch.arange(len(names), device=labels.device)
    end = sizes[by_size].cumsum(0)
    arranged = gallery[place[classes[gallery]].argsort(stable=True)]
    symmetric = own and len(queries) == len(gallery)
    asking = arranged if symmetric else queries[place[classes[queries]].argsort(stable=True)]
    where = place[classes[asking]]
    return Layout(asking, arranged, (end - sizes[by_size])[where], end[where], own, symmetric)

"""What a row-wise loss hands to the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nearkin.masks import Masks
from nearkin.pairs import Mask
from nearkin.vectors import unit

# One value per row, or a numerator and a count per row where the whole batch shares one divisor.
RowResult = Tensor | tuple[Tensor, Tensor]
# (inner products, positive, negative, row inputs, shared inputs, sizes) of some rows -> result of these rows.
RowFunction = Callable[[Tensor, Mask, Tensor, tuple[Tensor, ...], tuple[Tensor, ...], "Sizes"], RowResult]


class Sizes(NamedTuple):
    """What a row function may rely on: the most positives of any row, the embedding size, and whether it may overwrite the
    inner products it is given, which nobody reads after it."""

    depth: int = 0
    dim: int = 0
    spare: bool = False


NO_SIZES = Sizes()
# (inner products, labels of rows, of columns, own columns or None, upstream, whether slopes are wanted, whether own columns
# hold the queries themselves) -> values of the rows; the slopes are written over the inner products.
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None, Tensor, bool, bool], Tensor]


@dataclass(frozen=True)
class Plan:
    """All that a row-wise loss needs; nothing in it is of size n x m unless the caller gave explicit masks.

    ``source`` holds the vectors of the queries, ``gallery`` those of the columns; None means that the queries are the
    columns too. With ``unit`` and ``gallery_unit`` they are still to be scaled to length 1, and may be of 16 bits: the
    engine prepares them, rows block by block, so that no second batch of vectors need exist. Without ``column_gradient``
    the columns are constants.
    ``row`` inputs have one entry per query, ``shared`` inputs go whole to every block; both may need gradient.
    ``products`` is the type in which compiled blocks multiply vectors, where that is less than the type they are kept in;
    sums are kept in the latter. ``kernel`` is the step of a large block on a GPU written by hand, instead of a compiled
    one; it knows pairs by their labels only.
    """

    function: RowFunction
    source: Tensor
    masks: Masks
    gallery: Tensor | None = None
    row: tuple[Tensor, ...] = ()
    shared: tuple[Tensor, ...] = ()
    weights: Tensor | None = None
    column_gradient: bool = True
    sizes: Sizes = NO_SIZES
    needs_masks: bool = True
    unit: bool = False
    gallery_unit: bool = False
    total: Callable[[Tensor], Tensor] | None = None  # the sum over all processes of what the loss is divided by
    products: torch.dtype | None = None
    kernel: Kernel | None = None

    @cached_property
    def queries(self) -> Tensor:
        """The queries as they are compared."""
        return unit(self.source) if self.unit else self.source

    @cached_property
    def columns(self) -> Tensor:
        """The columns as they are compared."""
        if self.gallery is None:
            return self.queries
        return unit(self.gallery) if self.gallery_unit else self.gallery

    def rows(self, start: int, stop: int, like: Tensor, sheet: Tensor | None = None) -> tuple[Mask, Tensor]:
        """The masks of some rows; nothing for a function that does not look at them."""
        if not self.needs_masks:
            return like.new_empty(0), like.new_empty(0)
        return self.masks.rows(start, stop, like, sheet)


def divisor(plan: Plan, numerator: Tensor, count: Tensor | None) -> Tensor | int:
    """What the sum over rows is divided by: the (weighted) number of rows or counts, never 0."""
    if count is None and plan.weights is None and plan.total is None:
        return max(1, len(numerator))
    count = torch.ones_like(numerator) if count is None else count.detach()
    found = (count if plan.weights is None else count * plan.weights).sum()
    if plan.total is not None:
        found = plan.total(found)
    return torch.where(found > 0, found, torch.ones_like(found))

"""The whole pair matrix of a batch, for losses that no single row determines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nearkin.engine.product import inner_products
from nearkin.masks import Masks
from nearkin.miners import Context, Mined
from nearkin.pairs import Mask, refuse_arithmetic, spread

if TYPE_CHECKING:
    from nearkin.losses.base import PairLoss


@dataclass(frozen=True)
class Whole:
    """Queries against columns, and columns against columns; made when first asked for.

    Without a separate gallery both are the same matrix. ``given`` replaces the inner products of queries and columns,
    so that a loss can be differentiated with respect to them.
    """

    loss: PairLoss
    queries: Tensor
    columns: Tensor
    masks: Masks
    weights: Tensor | None = None
    given: Tensor | None = None

    @property
    def own(self) -> bool:
        """The queries are the columns."""
        return self.columns is self.queries

    @cached_property
    def dot(self) -> Tensor:
        return inner_products(self.queries, self.columns) if self.given is None else self.given

    @cached_property
    def matrix(self) -> Tensor:
        return self._matrix(self.dot, self.queries)

    @cached_property
    def column_matrix(self) -> Tensor:
        return self.matrix if self.own else self._matrix(inner_products(self.columns, self.columns), self.columns)

    @cached_property
    def mined(self) -> Mined:
        return self._mined(self.dot, self.matrix, self.masks)

    @cached_property
    def column_mined(self) -> Mined:
        """What the miner keeps of the rows of the columns among themselves."""
        return (
            self.mined
            if self.own
            else self._mined(
                inner_products(self.columns, self.columns), self.column_matrix, self._masks_among_columns()
            )
        )

    def column_masks(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Positive and negative pairs of the columns among themselves, before any miner."""
        return self.masks.all_rows(like) if self.own else self._masks_among_columns().all_rows(like)

    def _masks_among_columns(self) -> Masks:
        if self.masks.positive is not None:
            raise ValueError(
                f"gallery_labels must be given for {self.loss.name} with a gallery, got masks only: it also "
                f"compares gallery rows with each other; pass labels and gallery_labels."
            )
        m = self.masks.shape[1]
        return replace(self.masks, shape=(m, m), labels=self.masks.gallery_labels, self_index=None, apart=False)

    def once(self, mask: Mask) -> Tensor:
        """Counts of unordered pairs: a pair that stands here from either end counts one half from each."""
        mask = spread(mask, self.dot.detach())
        if self.own:
            if self.loss.chosen is None and self.masks.positive is None:
                return mask  # symmetric: every pair stands here twice, and a mean does not see that
            return mask * (1 - torch.sign(mask.T) / 2)
        if self.masks.self_index is None:
            return mask
        index = self.masks.self_index
        rows = (index >= 0).nonzero().squeeze(1)
        among = torch.sign(mask[rows][:, index[rows]])
        result = mask.clone()
        result[rows[:, None], index[rows]] *= 1 - among.T / 2
        return result

    @cached_property
    def anchor_weights(self) -> Tensor:
        """One weight per query, 1 unless the caller gave some."""
        return self.queries.new_ones(len(self.queries)) if self.weights is None else self.weights

    def classes(self) -> tuple[Tensor, Tensor]:
        """Class numbers of queries and columns; from explicit masks if these describe a partition into classes."""
        if self.masks.positive is None:
            assert self.masks.labels is not None and self.masks.gallery_labels is not None
            _, numbers = torch.unique(torch.cat([self.masks.labels, self.masks.gallery_labels]), return_inverse=True)
            return numbers[: len(self.queries)], numbers[len(self.queries) :]
        if self.own:
            together = self.masks.positive.bool() | torch.eye(
                len(self.queries), dtype=torch.bool, device=self.queries.device
            )
            first = together.to(torch.int8).argmax(1)
            if torch.equal(together, first[:, None] == first):
                return first, first
        raise ValueError(
            f"positive must split the batch into classes for {self.loss.name}, got overlapping sets or a "
            f"gallery: it scores a clustering; pass labels instead."
        )

    def _matrix(self, dot: Tensor, rows: Tensor) -> Tensor:
        if not self.loss.space.needs_squares:
            return self.loss.space.matrix(dot)
        return self.loss.space.matrix(dot, rows.square().sum(1), self.columns.square().sum(1))

    def _mined(self, dot: Tensor, matrix: Tensor, masks: Masks) -> Mined:
        positive, negative = masks.rows(0, len(dot), dot)
        ids = torch.arange(len(dot), device=dot.device)
        if masks.self_index is not None:
            ids = torch.where(masks.self_index >= 0, masks.self_index, ids)
        loss = self.loss
        depth = masks.depth if loss.chosen is not None and loss.chosen.needs_depth else 0
        context = Context(depth, self.queries.shape[1], loss.context_key(self.queries), ids)
        return loss.mine(dot, matrix, positive, negative, context)


refuse_arithmetic(
    Whole,
    "whole must take its matrix from what it is given, got arithmetic with Whole itself; write pairs.matrix, and "
    "nearkin.pairs.split(pairs.matrix, pairs.mined.positive, pairs.mined.negative) for the pairs that count.",
)

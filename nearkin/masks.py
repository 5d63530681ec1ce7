"""Which pairs are positive and which negative, row block by row block, from labels or from explicit masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nearkin.pairs import Few, Mask, spread

# Positives are kept as columns side by side while these are at most this share of a row.
SHARE = 8
# Entries of a matrix below which finding the columns costs more than it saves.
SMALL = 2**17


@dataclass(frozen=True)
class Masks:
    """The two masks of n queries against m gallery columns, made for any range of rows on demand.

    Either ``labels`` and ``gallery_labels`` are set, or ``positive`` (and perhaps ``negative``, else every other pair).
    ``self_index`` names each query's own column (-1: none). Without it query i is column i, or with ``apart`` no query has a
    column of its own.
    ``valid`` (m,) says which columns count at all (a memory that is not full yet).
    """

    shape: tuple[int, int]
    labels: Tensor | None = None
    gallery_labels: Tensor | None = None
    self_index: Tensor | None = None
    positive: Tensor | None = None
    negative: Tensor | None = None
    valid: Tensor | None = None
    apart: bool = False

    def rows(self, start: int, stop: int, like: Tensor) -> tuple[Mask, Tensor]:
        """Positive and negative counts of rows start to stop, in the type and on the device of ``like``."""
        if self.positive is None and self._few:
            return self._from_classes(start, stop, like)
        if self.positive is not None:
            positive = self.positive[start:stop].to(like.device, like.dtype, copy=True)
            if self.negative is not None:
                negative = self.negative[start:stop].to(like.device, like.dtype, copy=True)
            else:
                negative = 1 - torch.sign(positive)
            self._clear_own(negative, start, stop)
        else:
            assert self.labels is not None and self.gallery_labels is not None
            positive = (self.labels[start:stop, None] == self.gallery_labels).to(like.dtype)
            negative = 1 - positive
        self._clear_own(positive, start, stop)
        if self.valid is not None:
            keep = self.valid.to(like.device, like.dtype)
            positive, negative = positive * keep, negative * keep
        return positive, negative

    def all_rows(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Both masks of all rows as matrices."""
        positive, negative = self.rows(0, self.shape[0], like)
        return spread(positive, negative), negative

    @cached_property
    def depth(self) -> int:
        """An upper bound of the number of positives of any query."""
        if self.shape[0] == 0 or self.shape[1] == 0:
            return 0
        if self.positive is not None:
            return int((self.positive > 0).sum(1).max())
        assert self.gallery_labels is not None
        _, counts = torch.unique_consecutive(self._sorted[0], return_counts=True)
        return max(1, int(counts.max()) - (self.self_index is None and not self.apart))

    # ------------------------------------------------------------------------------------------ from classes

    @cached_property
    def _few(self) -> bool:
        """Whether to keep positives as columns. Counting a class's members makes another device wait, so not there."""
        if self.labels is None or self.labels.device.type != "cpu" or self.shape[0] * self.shape[1] < SMALL:
            return False
        return self.depth * SHARE <= self.shape[1]

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor]:
        """Gallery labels in order, and the column of each."""
        assert self.gallery_labels is not None
        return tuple(self.gallery_labels.sort(stable=True))  # type: ignore[return-value]

    @cached_property
    def _place(self) -> Tensor:
        """Where each column stands in the order of labels."""
        order = self._sorted[1]
        return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))

    def _from_classes(self, start: int, stop: int, like: Tensor) -> tuple[Few, Tensor]:
        assert self.labels is not None
        values, order = self._sorted
        mine = self.labels[start:stop].to(values.dtype)
        left = torch.searchsorted(values, mine)
        right = torch.searchsorted(values, mine, right=True)
        index = left[:, None] + torch.arange(self.depth)
        if not self.apart:
            own = torch.arange(start, stop) if self.self_index is None else self.self_index[start:stop]
            place = torch.where(own >= 0, self._place[own.clamp(min=0)], self.shape[1])
            index += index >= place[:, None]  # the members of the class in order, the query itself stepped over
        counts = (index < right[:, None]).to(like.dtype)
        columns = order[torch.minimum(index, (right[:, None] - 1).clamp(min=0))]
        negative = torch.ones(len(mine), self.shape[1], dtype=like.dtype)
        # Filled-up columns are of the class too, except where the gallery has none of it.
        absent = (left == right).to(like.dtype)[:, None]
        negative.scatter_(1, columns, absent.expand_as(counts))
        self._clear_own(negative, start, stop)
        if self.valid is not None:
            keep = self.valid.to(like.dtype)
            counts, negative = counts * keep[columns], negative * keep
        return Few(columns, counts), negative

    def _clear_own(self, mask: Tensor, start: int, stop: int) -> None:
        if self.apart:
            return
        if self.self_index is None:
            mask.diagonal(offset=start).zero_()
            return
        own = self.self_index[start:stop, None]
        column = own.clamp(min=0)
        # A query without a column of its own writes back what stands there, so nothing has to ask the device.
        mask.scatter_(1, column, mask.gather(1, column) * (own < 0))

"""Which pairs are positive and which negative, row block by row block, from labels or from explicit masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nearkin.pairs import Few, Mask, spread

# Positives are kept as columns side by side while these are at most this share of a row.
SHARE = 8
# Entries of a matrix below which finding the columns costs more than it saves.
SMALL = 2**17
# Entries of a matrix from which labels of 8 bytes, read for every entry, cost more than numbering the classes.
NUMBERED = 2**24
# Positives of a batch up to which their columns are found once for all rows.
LITTLE = 2**18


@dataclass(frozen=True)
class Masks:
    """The two masks of n queries against m gallery columns, made for any range of rows on demand.

    Either ``labels`` and ``gallery_labels`` are set, or ``positive`` (and perhaps ``negative``, else every other pair).
    ``self_index`` names each query's own column (-1: none). Without it query i is column i, or with ``apart`` no query has a
    column of its own.
    ``valid`` (m,) says which columns count at all (a memory that is not full yet).
    ``members`` is the most columns that any class has, where that is known.
    """

    shape: tuple[int, int]
    labels: Tensor | None = None
    gallery_labels: Tensor | None = None
    self_index: Tensor | None = None
    positive: Tensor | None = None
    negative: Tensor | None = None
    valid: Tensor | None = None
    apart: bool = False
    members: int | None = None

    def rows(self, start: int, stop: int, like: Tensor, sheet: Tensor | None = None) -> tuple[Mask, Tensor]:
        """Positive and negative counts of rows start to stop, in the type and on the device of ``like``.

        ``sheet`` is memory of at least these rows that the negative counts may be written on.
        """
        if self.positive is None and self._few:
            return self._from_classes(start, stop, like, sheet)
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

    def parts(self, start: int, stop: int, own: Tensor | None) -> Parts:
        """What the masks of some rows are made of; ``own`` is what ``own_columns`` gave."""
        mine = None if own is None else own[start:stop]
        if self.positive is not None:
            negative = None if self.negative is None else self.negative[start:stop]
            return Parts(positive=self.positive[start:stop], negative=negative, own=mine, valid=self.valid)
        labels, others = self._numbers
        columns = counts = None
        # Their number is part of a compiled step's shapes, so it is not asked for here.
        if "depth" in vars(self) and self._few:
            whole = self._all_members
            columns, counts, _ = self._members(start, stop) if whole is None else (x[start:stop] for x in whole)
            counts = counts if self.valid is None else counts * self.valid.to(counts.device)[columns]
        return Parts(labels[start:stop], others, None, None, mine, self.valid, columns, counts)

    def own_columns(self, device: torch.device) -> Tensor | None:
        """The column that each query itself is (n,), -1 for none; None where no query is a column."""
        if self.apart:
            return None
        if self.self_index is None:
            return torch.arange(self.shape[0], dtype=torch.int32, device=device)
        return self.self_index.to(torch.int32)

    @cached_property
    def depth(self) -> int:
        """An upper bound of the number of positives of any query."""
        if self.shape[0] == 0 or self.shape[1] == 0:
            return 0
        if self.positive is not None:
            return int((self.positive > 0).sum(1).max())
        assert self.gallery_labels is not None
        most = self.members
        if most is None:
            _, counts = torch.unique_consecutive(self._sorted[0], return_counts=True)
            most = int(counts.max())
        return max(1, min(most, self.shape[1]) - (self.self_index is None and not self.apart))

    def crowded(self) -> Tensor:
        """Whether a class has more columns than ``members`` says, without asking the device."""
        assert self.members is not None
        labels = self._sorted[0]
        return (labels[self.members :] == labels[: len(labels) - self.members]).any()

    # ------------------------------------------------------------------------------------------ from classes

    @cached_property
    def _few(self) -> bool:
        """Whether to keep positives as columns. Counting a class's members makes a device wait, so there only if somebody
        asked for their number already."""
        if self.labels is None or self.shape[0] * self.shape[1] < SMALL:
            return False
        if self.labels.device.type != "cpu" and "depth" not in vars(self):
            return False
        return self.depth * SHARE <= self.shape[1]

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor]:
        """Gallery labels in order, and the column of each."""
        assert self.gallery_labels is not None
        return tuple(self.gallery_labels.sort(stable=True))  # type: ignore[return-value]

    @cached_property
    def _numbers(self) -> tuple[Tensor, Tensor]:
        """Labels of queries and columns; of a large batch numbers of 4 bytes that are equal where the labels are."""
        assert self.labels is not None and self.gallery_labels is not None
        if self.shape[0] * self.shape[1] < NUMBERED:
            return self.labels, self.gallery_labels
        values = self._sorted[0]
        columns = torch.searchsorted(values, self.gallery_labels, out_int32=True)
        if self.labels is self.gallery_labels:
            return columns, columns
        values, mine = _alike(values, self.labels)
        first = torch.searchsorted(values, mine, out_int32=True)
        found = values[first.clamp(max=len(values) - 1)] == mine
        return torch.where(found, first, -1), columns

    @cached_property
    def _place(self) -> Tensor:
        """Where each column stands in the order of labels."""
        order = self._sorted[1]
        return torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))

    @cached_property
    def _span(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where each query's class begins and ends in the order of labels (n, 1), and where the query itself stands.

        Those without a place of their own stand behind the last column.
        """
        assert self.labels is not None
        m = self.shape[1]
        values, mine = _alike(self._sorted[0], self.labels)
        left, right = torch.searchsorted(values, mine), torch.searchsorted(values, mine, right=True)
        place = torch.full_like(left, m)
        if self.self_index is not None:
            place = torch.where(self.self_index >= 0, self._place[self.self_index.clamp(min=0)], m)
        elif not self.apart:
            place = self._place
        return left[:, None], right[:, None], place[:, None]

    def _members(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
        """The other members of each query's class: which columns, whether real or filled up, and whether there is none."""
        left, right, place = (end[start:stop] for end in self._span)
        index = left + torch.arange(self.depth, device=left.device)
        index += index >= place  # the members of the class in order, the query itself stepped over
        columns = self._sorted[1][torch.minimum(index, (right - 1).clamp_(min=0))]
        return columns, index < right, left == right

    @cached_property
    def _all_members(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """Those of all queries at once, where that is little memory."""
        return self._members(0, self.shape[0]) if self.shape[0] * self.depth <= LITTLE else None

    def _from_classes(self, start: int, stop: int, like: Tensor, sheet: Tensor | None) -> tuple[Few, Tensor]:
        whole = self._all_members
        members = self._members(start, stop) if whole is None else (x[start:stop] for x in whole)
        columns, real, absent = members
        counts = real.to(like.dtype)
        negative = like.new_empty(stop - start, self.shape[1]) if sheet is None else sheet[: stop - start]
        negative.fill_(1)
        # Filled-up columns are of the class too, except where the gallery has none of it.
        negative.scatter_(1, columns, absent.to(like.dtype).expand_as(counts))
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


def _alike(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Two kinds of labels in a type that holds both."""
    dtype = torch.promote_types(first.dtype, second.dtype)
    return first.to(dtype), second.to(dtype)


class Parts(NamedTuple):
    """The tensors from which the masks of some rows can be made; what is not needed is None."""

    labels: Tensor | None = None
    gallery_labels: Tensor | None = None
    positive: Tensor | None = None
    negative: Tensor | None = None
    own: Tensor | None = None
    valid: Tensor | None = None
    columns: Tensor | None = None
    counts: Tensor | None = None

    def masks(self, like: Tensor) -> tuple[Mask, Tensor]:
        """Positive and negative counts, made without writing into any matrix: for a compiler, which then keeps none."""
        places = torch.arange(like.shape[1], dtype=torch.int32, device=like.device)
        mine = None if self.own is None else places == self.own[:, None]
        if self.positive is None:
            assert self.labels is not None and self.gallery_labels is not None
            same = self.labels[:, None] == self.gallery_labels
            first, second = (same if mine is None else same & ~mine).to(like.dtype), (~same).to(like.dtype)
        else:
            first = self.positive.to(like.dtype)
            second = 1 - torch.sign(first) if self.negative is None else self.negative.to(like.dtype)
            if mine is not None:
                first, second = first.masked_fill(mine, 0), second.masked_fill(mine, 0)
        if self.valid is not None:
            keep = self.valid.to(like.dtype)
            first, second = first * keep, second * keep
        if self.columns is not None and self.counts is not None:
            return Few(self.columns, self.counts.to(like.dtype)), second
        return first, second

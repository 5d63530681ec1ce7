"""Which pairs are positive and which negative, row block by row block, from labels or from explicit masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Masks:
    """The two masks of n queries against m gallery columns, made for any range of rows on demand.

    Either ``labels`` and ``gallery_labels`` are set, or ``positive`` (and perhaps ``negative``, else every other pair).
    ``self_index`` names each query's own column (-1: none); None means that query i is column i.
    ``valid`` (m,) says which columns count at all (a memory that is not full yet).
    """

    shape: tuple[int, int]
    labels: Tensor | None = None
    gallery_labels: Tensor | None = None
    self_index: Tensor | None = None
    positive: Tensor | None = None
    negative: Tensor | None = None
    valid: Tensor | None = None

    def rows(self, start: int, stop: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Positive and negative counts of rows start to stop, in the type and on the device of ``like``."""
        if self.positive is not None:
            positive = self.positive[start:stop].to(like.device, like.dtype, copy=True)
            if self.negative is not None:
                negative = self.negative[start:stop].to(like.device, like.dtype, copy=True)
            else:
                negative = 1 - torch.sign(positive)
        else:
            assert self.labels is not None and self.gallery_labels is not None
            positive = same(self.labels[start:stop], self.gallery_labels, like)
            negative = 1 - positive
        self._clear_own(positive, start, stop)
        if self.positive is not None:
            self._clear_own(negative, start, stop)
        if self.valid is not None:
            keep = self.valid.to(like.device, like.dtype)
            positive, negative = positive * keep, negative * keep
        return positive, negative

    def _clear_own(self, mask: Tensor, start: int, stop: int) -> None:
        if self.self_index is None:
            mask.diagonal(offset=start).zero_()
            return
        own = self.self_index[start:stop, None]
        column = own.clamp(min=0)
        # A query without a column of its own writes back what stands there, so nothing has to ask the device.
        mask.scatter_(1, column, mask.gather(1, column) * (own < 0))

    def all_rows(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return self.rows(0, self.shape[0], like)

    def depth(self) -> int:
        """An upper bound of the number of positives of any query."""
        n, m = self.shape
        if n == 0 or m == 0:
            return 0
        if self.positive is not None:
            return int((self.positive > 0).sum(1).max())
        assert self.gallery_labels is not None
        _, counts = torch.unique(self.gallery_labels, return_counts=True)
        return max(1, int(counts.max()) - (self.self_index is None))


def same(rows: Tensor, columns: Tensor, like: Tensor) -> Tensor:
    """1.0 where a row's label equals a column's label, else 0.0."""
    if like.is_cuda or torch.compiler.is_compiling():
        return (rows[:, None] == columns).to(like.dtype)
    return torch.eq(rows[:, None], columns, out=torch.empty((len(rows), len(columns)), dtype=like.dtype))

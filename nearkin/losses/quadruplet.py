"""Quadruplet loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin import checks, miners
from nearkin.derivatives import once
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.whole import Whole
from nearkin.pairs import above, few
from nearkin.reductions import ratio


class _Quadruplets(torch.autograd.Function):
    """Sum over the quadruplets of given triplets (a, p, n) and every n' that is negative to both a and n.

    One anchor at a time, the gradient formed on the way: nothing larger than the matrix is kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        square: Tensor,
        column_square: Tensor,
        negative: Tensor,
        column_negative: Tensor,
        triplets: tuple[Tensor, Tensor, Tensor, Tensor],
        first_margin: float,
        second_margin: float,
    ) -> tuple[Tensor, Tensor]:
        a, p, n, count = triplets
        total, number = square.new_zeros(()), square.new_zeros(())
        slope, column_slope = torch.zeros_like(square), torch.zeros_like(column_square)
        ends = torch.bincount(a, minlength=len(square)).cumsum(0).tolist()  # triplets come sorted by anchor
        for anchor, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
            if start == stop:
                continue
            mine = slice(start, stop)
            other = (
                column_negative[n[mine]] * negative[anchor]
            )  # (triplets of this anchor, columns): which n' may stand
            times = count[mine]
            others = other.sum(1) * times
            near = square[anchor, p[mine]]
            first = (near - square[anchor, n[mine]] + first_margin).clamp(min=0)
            second = (near[:, None] - column_square[n[mine]] + second_margin).clamp(min=0).mul_(other)
            total += (first * others).sum() + (second.sum(1) * times).sum()
            number += others.sum()
            active = above(first, 0.0) * others
            active_second = above(second, 0.0) * other * times[:, None]
            slope[anchor].index_add_(0, p[mine], active + active_second.sum(1))
            slope[anchor].index_add_(0, n[mine], -active)
            column_slope.index_add_(0, n[mine], -active_second)
        ctx.save_for_backward(slope, column_slope)
        ctx.mark_non_differentiable(number)
        return total, number

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Any, ...]:
        slope, column_slope = ctx.saved_tensors
        return slope * grad, column_slope * grad, None, None, None, None, None


class Quadruplet(PairLoss):
    """Pulls positives nearer to the anchor than negatives, and nearer than two negatives are to each other (Chen 2017).

    ``[d_ap^2 - d_an^2 + first_margin]+ + [d_ap^2 - d_nn'^2 + second_margin]+``, the class of n' differs from those of a
    and n; mean over all valid quadruplets, or those of a miner's triplets. Not row-wise: it reads the row of n.

    >>> loss = Quadruplet()
    >>> loss(torch.eye(6), torch.tensor([0, 0, 1, 1, 2, 2]))
    tensor(1.5000)
    """

    name = "quadruplet"
    limits = {"first_margin": checks.NOT_NEGATIVE, "second_margin": checks.NOT_NEGATIVE}
    rowwise = False
    why = "a term reads the row of a negative"

    def __init__(self, *, first_margin: float = 1.0, second_margin: float = 0.5, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.first_margin = first_margin
        self.second_margin = second_margin

    def whole(self, pairs: Whole) -> Tensor:
        square = (2 - 2 * pairs.matrix).clamp(min=0)
        column_square = square if pairs.own else (2 - 2 * pairs.column_matrix).clamp(min=0)
        mined = pairs.mined if pairs.mined.linked else miners.product(pairs.mined, pairs.masks.depth)
        p, n = few(mined.positive, 0), few(mined.negative, 0)
        times = n.counts * torch.sign(p.counts)
        a, k = times.nonzero(as_tuple=True)
        triplets = (a, p.columns[a, k], n.columns[a, k], times[a, k] * pairs.anchor_weights[a])
        negative, column_negative = pairs.masks.all_rows(square)[1], pairs.column_masks(square)[1]
        total, number = _Quadruplets.apply(
            square, column_square, negative, column_negative, triplets, self.first_margin, self.second_margin
        )
        return ratio(total, number)

"""Both sides of a loss in one go, where a compiler has whole masks: a pair is positive or negative, never both, so one
exponential with the numbers of its side is enough, where one for either side would be worked out for every pair."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nearkin.derivatives import once
from nearkin.pairs import Mask, split
from nearkin.reductions import EXP_LEAST, EXP_MOST, counted_logsumexp, ratio, soft_sum, softplus
from nearkin.tracing import by_engine


class Side(NamedTuple):
    """A side reads a value as scale (value - shift)."""

    scale: float
    shift: float

    def of(self, values: Tensor) -> Tensor:
        """scale (values - shift) in one pass."""
        return torch.add(values.new_full((), -self.scale * self.shift), values, alpha=self.scale)

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Where it lies for values between two."""
        ends = self.scale * (low - self.shift), self.scale * (high - self.shift)
        return min(ends), max(ends)


def together(positive: Mask, negative: Mask) -> tuple[Tensor, Tensor] | None:
    """Both masks, if both sides are to be worked out in one go."""
    whole = isinstance(positive, Tensor) and isinstance(negative, Tensor)
    return (positive, negative) if by_engine() and whole else None  # type: ignore[return-value]


def logsumexps(
    values: Tensor,
    positive: Mask,
    negative: Mask,
    *,
    pull: Side,
    push: Side,
    one: bool = False,
    within: tuple[float, float] = (-1, 1),
) -> tuple[Tensor, Tensor]:
    """Of each row the logarithms of the counted sums of exp(scale (v - shift)), plus 1 inside the log if ``one``, over the
    positives as ``pull`` reads them and over the negatives as ``push`` does.

    An empty side gives -inf (0 with ``one``). All values are known to lie ``within``.
    """
    ranges = pull.within(*within), push.within(*within)
    small = all(high <= EXP_MOST and (one or low >= EXP_LEAST) for low, high in ranges)
    both = together(positive, negative)
    if small and both:
        totals: tuple[Tensor, Tensor] = _Exponentials.apply(values, *both, pull, push, one)
        return totals
    near, p, far, n = split(values, positive, negative, alone=True)
    return (
        counted_logsumexp(pull.of(near), p, one=one, within=ranges[0]),
        counted_logsumexp(push.of(far), n, one=one, within=ranges[1]),
    )


def soft_sums(
    values: Tensor, positive: Mask, negative: Mask, *, pull: Side, push: Side
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of each row the sum of log(1 + exp(scale (v - shift))) over the positives and their number, then of the negatives."""
    both = together(positive, negative)
    if both:
        (p, n), (close, away) = both, _SoftSums.apply(values, *both, pull, push)
        return close, p.sum(1), away, n.sum(1)
    near, p, far, n = split(values, positive, negative, alone=True)
    return soft_sum(near, p, *pull), p.sum(1), soft_sum(far, n, *push), n.sum(1)


def signed(positive: Tensor) -> Tensor:
    """1 for positives, -1 for all others."""
    return torch.where(positive > 0, 1.0, torch.full((), -1.0, dtype=positive.dtype, device=positive.device))


def _read(values: Tensor, positive: Tensor, pull: Side, push: Side) -> Tensor:
    """Every value as its side reads it."""
    return torch.where(positive > 0, pull.of(values), push.of(values))


def _slopes(
    each: Tensor, positive: Tensor, negative: Tensor, near: Tensor, far: Tensor, pull: Side, push: Side
) -> Tensor:
    """``each`` times its count and the number of its row and side."""
    return each * (positive * (near * pull.scale)[:, None] + negative * (far * push.scale)[:, None])


class _Exponentials(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, positive: Tensor, negative: Tensor, pull: Side, push: Side, one: bool
    ) -> tuple[Tensor, Tensor]:
        part = _read(values, positive, pull, push).exp()
        totals = (part * positive).sum(1), (part * negative).sum(1)
        shares = (1 / (1 + total) if one else ratio(torch.ones_like(total), total) for total in totals)
        ctx.save_for_backward(part, positive, negative, *shares)
        ctx.sides = pull, push
        near, far = (total.log1p() if one else total.log() for total in totals)
        return near, far

    @staticmethod
    @once
    def backward(ctx: Any, near: Tensor, far: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        part, positive, negative, first, second = ctx.saved_tensors
        slope = _slopes(part, positive, negative, near * first, far * second, *ctx.sides)
        return slope, None, None, None, None, None


class _SoftSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, positive: Tensor, negative: Tensor, pull: Side, push: Side
    ) -> tuple[Tensor, Tensor]:
        scaled = _read(values, positive, pull, push)
        part = softplus(scaled)
        ctx.save_for_backward(scaled.sigmoid(), positive, negative)
        ctx.sides = pull, push
        return (part * positive).sum(1), (part * negative).sum(1)

    @staticmethod
    @once
    def backward(ctx: Any, near: Tensor, far: Tensor) -> tuple[Tensor, None, None, None, None]:
        slope, positive, negative = ctx.saved_tensors
        return _slopes(slope, positive, negative, near, far, *ctx.sides), None, None, None, None

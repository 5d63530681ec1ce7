"""Rows of a matrix to numbers: largest, sums, logarithms of sums of exponentials, counts above a level.

Everything here is safe on empty rows, equal values and extreme ones: finite values, finite gradients.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from nearkin.derivatives import once
from nearkin.pairs import FAR, Few, Mask, take
from nearkin.tracing import by_engine, traced

# Columns whose largest value is found in one go.
STRETCH = 64
# Values between these have exponentials that can be summed in float32, by the million.
EXP_LEAST, EXP_MOST = -80.0, 60.0
# Of the polynomial nearest to log(1 + x) / x between 0 and 1, in relative terms; from the constant on.
LOG1P = (
    0.99999994, -0.49999493, 0.33319098, -0.24842982, 0.19106007, -0.13663244, 0.07822593, -0.029505227, 0.0052326913
)  # fmt: skip
# Columns up to which all levels of a row are compared at once.
SIDE_BY_SIDE = 16


def safe_exp_(values: Tensor) -> Tensor:
    """exp in place that stops at the smallest normal number: denormal results are a hundred times slower on a CPU."""
    return values.clamp_(min=math.log(torch.finfo(values.dtype).tiny) + 1e-3).exp_()


def hide(values: Tensor, mask: Tensor) -> Tensor:
    """Values where the mask counts, far below every value elsewhere."""
    if by_engine():  # a choice, which a GPU makes in one instruction
        return torch.where(mask > 0, values, -FAR)
    hidden = torch.sign(mask).sub_(1)
    return torch.add(values, hidden, alpha=FAR, out=hidden)


def masked_max(values: Tensor, mask: Mask) -> Tensor:
    """Largest counted value of each row; -inf for an empty row. The gradient goes to one of equals."""
    values, counts = take(values, mask)
    if not values.shape[1]:
        return values.new_full((len(values),), -math.inf)
    if values.requires_grad:
        hidden = hide(values.detach(), counts)
        where = hidden.argmax(1, keepdim=True)
        top, empty = values.gather(1, where).squeeze(1), hidden.gather(1, where).squeeze(1) < -FAR / 2
    else:
        top = hide(values, counts).amax(1)
        empty = top < -FAR / 2
    return top.masked_fill(empty, -math.inf)


def masked_min(values: Tensor, mask: Mask) -> Tensor:
    """Smallest counted value of each row; +inf for an empty row. The gradient goes to one of equals."""
    return -masked_max(-values, mask)


@torch.no_grad()
def extremes(values: Tensor, mask: Mask) -> tuple[Tensor, Tensor, Tensor]:
    """Columns (b,) of the smallest and of the largest counted value of each row, and whether there is any."""
    few_values, counts = take(values, mask)
    if not counts.shape[1]:
        nowhere = torch.zeros(len(values), dtype=torch.long, device=values.device)
        return nowhere, nowhere, nowhere > 0
    away = torch.sign(counts).sub_(1)
    high = place_of_maximum(torch.add(few_values, away, alpha=FAR))
    low = place_of_maximum(torch.sub(away * FAR, few_values))
    if isinstance(mask, Few):
        low, high = (mask.columns.gather(1, place[:, None]).squeeze(1) for place in (low, high))
    return low, high, counts.amax(1) > 0


def place_of_maximum(values: Tensor) -> Tensor:
    """The column (b,) of the first largest value of each row, as argmax gives it.

    On a CPU argmax looks at one value after the other, while amax is as fast as memory. So the largest value of each
    stretch of a row comes first, then the stretch, then the place in it.
    """
    wide = values.shape[1] // STRETCH * STRETCH
    if values.device.type != "cpu" or wide < 8 * STRETCH or traced():
        return values.argmax(1)
    stretches = values[:, :wide].unflatten(1, (-1, STRETCH))
    tops = stretches.amax(2)
    if wide < values.shape[1]:
        tops = torch.cat([tops, values[:, wide:].amax(1, keepdim=True)], 1)
    chosen = tops.argmax(1, keepdim=True)
    columns = (chosen * STRETCH + torch.arange(STRETCH)).clamp_(max=values.shape[1] - 1)
    return (chosen * STRETCH + values.gather(1, columns).argmax(1, keepdim=True)).squeeze(1)


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """numerator / denominator, 0 where the denominator is 0."""
    return numerator / torch.where(denominator > 0, denominator, torch.ones_like(denominator))


def counted_sum(values: Tensor, counts: Tensor) -> Tensor:
    """Sum of the counted values of each row."""
    return (values * counts).sum(1)


def counted_mean(values: Tensor, counts: Tensor) -> Tensor:
    """Mean of the counted values of each row; 0 for an empty row."""
    return ratio(counted_sum(values, counts), counts.sum(1))


def softmax_(values: Tensor) -> Tensor:
    """Softmax of rows in place; one pass on a CPU, where maximum, difference, exponential and sum would be four."""
    return torch.softmax(values, 1, out=None if traced() else values)


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, mask: Tensor, one: bool, small: bool) -> Tensor:
        part, top = _exponentials(values, mask, small)
        total = part.sum(1)
        value = torch.where(total > 0, top + total.log(), -math.inf)
        share = ratio(torch.ones_like(total), total)
        ctx.save_for_backward(part, share * torch.sigmoid(value) if one else share)
        return torch.logaddexp(value, torch.zeros_like(value)) if one else value

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        part, share = ctx.saved_tensors
        return part * (grad * share)[:, None], None, None, None


def _exponentials(values: Tensor, mask: Tensor, small: bool) -> tuple[Tensor, Tensor]:
    """mask exp(values - top) and the ``top`` of each row, its largest value or 0 if no value is large."""
    if small:
        return values.exp().mul_(mask), values.new_zeros(len(values))
    hidden = hide(values, mask)
    top = hidden.amax(1)
    if traced():
        return (hidden - top[:, None]).exp().mul_(mask), top
    part = softmax_(hidden)
    # The largest share is that of the top, so all of them were divided by its inverse.
    rest = part.amax(1).log()
    return part.mul_(mask), top - rest  # a pair may count more than once


def counted_logsumexp(
    values: Tensor, counts: Tensor, *, one: bool = False, within: tuple[float, float] | None = None
) -> Tensor:
    """log of the counted sum of exp(values) of each row, plus 1 inside the log if ``one``.

    An empty row gives -inf (0 with ``one``) and gradient 0. ``within``: where all values are known to lie; a compiler is
    then spared a pass over them for the largest, if their exponentials can be summed as they are.
    """
    small = by_engine() and within is not None and within[1] <= EXP_MOST and (one or within[0] >= EXP_LEAST)
    return _LogSumExp.apply(values, counts, one, small)


class _LogOnePlusExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.save_for_backward(values)
        return softplus(values)

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (values,) = ctx.saved_tensors
        return grad * torch.sigmoid(values)


def softplus(values: Tensor) -> Tensor:
    """log(1 + exp(values)) without threshold or overflow; no gradient."""
    if by_engine() and values.dtype == torch.float32:
        part = _exp_of_negative(values.abs().neg())
        return part * _log1p_over(part) + values.clamp(min=0)
    return _exp_of_negative(values.abs().neg_()).log1p_().add_(values.clamp(min=0))


def _exp_of_negative(values: Tensor) -> Tensor:
    """exp of values up to 0, where denormal results are slow in place and without them."""
    if values.is_cuda:
        return values.exp()
    # What safe_exp_ held at the smallest normal number is 0.
    return torch.threshold_(safe_exp_(values), 2 * torch.finfo(values.dtype).tiny, 0.0)


def _log1p_over(values: Tensor) -> Tensor:
    """log(1 + x) / x of float32 between 0 and 1, to 2e-7 of it, in fewer instructions than log1p has on a GPU."""
    found = values.new_full((), LOG1P[-1])
    for coefficient in LOG1P[-2::-1]:
        found = found * values + coefficient
    return found


def log1pexp(values: Tensor) -> Tensor:
    """log(1 + exp(values)) without threshold or overflow."""
    return _LogOnePlusExp.apply(values)


class _SoftSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, counts: Tensor, scale: float, shift: float) -> Tensor:
        scaled = torch.add(values.new_full((), -scale * shift), values, alpha=scale)
        total = softplus(scaled).mul_(counts).sum(1)
        ctx.save_for_backward(scaled.sigmoid_().mul_(counts))
        ctx.scale = scale
        return total

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (slope,) = ctx.saved_tensors
        return slope * (grad * ctx.scale)[:, None], None, None, None


def soft_sum(values: Tensor, counts: Tensor, scale: float, shift: float) -> Tensor:
    """Sum of log(1 + exp(scale (v - shift))) over the counted values of each row, without threshold or overflow."""
    return _SoftSum.apply(values, counts, scale, shift)


class _CountAbove(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, counts: Tensor, levels: Tensor, temperature: float) -> Tensor:
        scratch, slopes, sums = torch.empty_like(values), [], []
        levels = levels / -temperature
        for k in range(levels.shape[1]):
            part = torch.add(levels[:, k : k + 1], values, alpha=1 / temperature).sigmoid_()
            torch.mul(part, counts, out=scratch)
            sums.append(scratch.sum(1))
            # c t becomes its slope c t (1 - t) in place.
            slopes.append(torch.addcmul(scratch, scratch, part, value=-1, out=part))
        ctx.save_for_backward(*slopes)
        ctx.temperature = temperature
        return torch.stack(sums, 1)

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor, None]:
        slopes = ctx.saved_tensors
        grad = grad / ctx.temperature
        level_grad = torch.stack([slope.sum(1) for slope in slopes], 1)
        total = slopes[0] * grad[:, :1]
        for k in range(1, len(slopes)):
            total.addcmul_(slopes[k], grad[:, k : k + 1])
        return total, None, level_grad * -grad, None


def count_above(values: Tensor, counts: Tensor, levels: Tensor, temperature: float) -> Tensor:
    """How many of the counted values of a row lie above each of its levels (b, k), at least one: sums of
    sigmoid((v - level) / temperature)."""
    if values.shape[1] <= SIDE_BY_SIDE:  # few steps rather than little memory
        each = torch.sigmoid((values[:, None] - levels[:, :, None]) / temperature)
        return (each * counts[:, None]).sum(2)
    return _CountAbove.apply(values, counts, levels, temperature)

"""The pair currency: a matrix of similarities or distances between rows and columns, and two masks of counts.

A mask is a float tensor of non-negative counts with the shape of the matrix: 0 leaves a pair out, 1 counts it once,
2 twice (a random miner may draw a pair twice). Floats rather than booleans because a CPU multiplies floats at memory
speed while ``torch.where`` and boolean products run about thirty times slower. Where only few columns of a row count, as
with positives, a mask may be ``Few``: these columns and their counts side by side. ``take`` makes both look alike.

Everything here is safe on empty rows, duplicate vectors and extreme values: finite values, finite gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Stands for "infinitely far below" in float32 sums without making inf - inf possible.
FAR = 1e30

# Numbers of one chunk of vectors: its float64 copy fits the cache of one core.
CHUNK = 2**17
GPU_CHUNK = 2**24

# Inner products of larger raw coordinates would not stay below FAR.
RAW_LIMIT = 1e12
# Columns whose largest value is found in one go.
STRETCH = 64


def snap(dtype: torch.dtype) -> float:
    """Squared distances up to this are rounding noise of equal vectors and count as 0."""
    return 1e-14 if dtype == torch.float64 else 1e-6


def flat(dtype: torch.dtype) -> float:
    """Squared distances up to this have gradient 0: the root's slope is unbounded there."""
    return 1e-12 if dtype == torch.float64 else 1e-6


# ---------------------------------------------------------------------------------------------------- vectors


class _Widen(torch.autograd.Function):
    """Half precision to float32; the gradient saturates at the half type's range instead of becoming infinite."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.dtype = vectors.dtype
        return vectors.float()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        limit = torch.finfo(ctx.dtype).max
        return grad.clamp(-limit, limit).to(ctx.dtype)


class _Held(torch.autograd.Function):
    """Coordinates held to the limit; the gradient there is that of the held point, which is finite."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        return vectors.clamp(-RAW_LIMIT, RAW_LIMIT)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def chunks(vectors: Tensor) -> Iterator[slice]:
    """Rows in pieces whose temporary results stay in the cache of a CPU; elsewhere larger ones, that take little memory."""
    numbers = CHUNK if vectors.device.type == "cpu" else GPU_CHUNK
    rows = max(1, numbers // max(1, vectors.shape[1]))
    return (slice(start, start + rows) for start in range(0, len(vectors), rows))


def inverse_norms(vectors: Tensor) -> Tensor:
    """1 / |f| of rows (n, 1); 0 for a zero row."""
    parts = [_inverse_norms(vectors[part]) for part in chunks(vectors)]
    return parts[0] if len(parts) == 1 else torch.cat(parts or [vectors.new_empty(0, 1)])


def _inverse_norms(rows: Tensor) -> Tensor:
    if rows.dtype == torch.float64:
        largest = rows.abs().amax(1, keepdim=True)
        safe = torch.where(largest > 0, largest, torch.ones_like(largest))
        norm = torch.linalg.vector_norm(rows / safe, dim=1, keepdim=True) * safe
        zero = norm < 1e-290
    else:
        # float64 accumulation holds the square of every float32, so nothing overflows or vanishes.
        norm = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)
        zero = norm < 1e-30
    return norm.reciprocal_().masked_fill_(zero, 0.0).to(rows.dtype)


def through_unit(
    grad: Tensor, unit: Callable[[slice], Tensor], inverse: Tensor, scale: Tensor | None, out: Tensor
) -> Tensor:
    """The gradient for rows f from that for f / |f|, times ``scale``, into ``out``, which may be ``grad`` itself.

    ``unit`` gives the unit vectors of some rows.
    """
    factor = inverse if scale is None else inverse * scale
    for part in chunks(grad):
        rows = unit(part)
        along = (grad[part] * rows).sum(1, keepdim=True)
        torch.addcmul(grad[part], rows, along, value=-1, out=out[part]).mul_(factor[part])
    return out


class _Unit(torch.autograd.Function):
    """f / |f| for rows; a zero row stays zero and gets no gradient."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        inverse = inverse_norms(vectors)
        unit = vectors * inverse
        ctx.save_for_backward(unit, inverse)
        return unit

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        return through_unit(grad, unit.__getitem__, inverse, None, torch.empty_like(grad))


def widen(vectors: Tensor) -> Tensor:
    """Half precision becomes float32; float32 and float64 stay as they are."""
    if vectors.dtype in (torch.float16, torch.bfloat16):
        return _Widen.apply(vectors)
    return vectors


def unit(vectors: Tensor) -> Tensor:
    """Rows scaled to length 1, in float32 or better.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return _Unit.apply(widen(vectors))


def raw(vectors: Tensor) -> Tensor:
    """Rows as they are, in float32 or better; float32 and bfloat16 are held to +-1e12 so that products stay finite."""
    if vectors.dtype in (torch.float16, torch.float64):
        return widen(vectors)
    vectors = widen(vectors)
    if vectors.device.type == "cpu":  # where looking is cheaper than a copy, and makes nobody wait
        low, high = torch.aminmax(vectors.detach())
        if low >= -RAW_LIMIT and high <= RAW_LIMIT:
            return vectors
    return _Held.apply(vectors)


class _Squares(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(vectors)
        return torch.cat([vectors[part].square().sum(1) for part in chunks(vectors)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (vectors,) = ctx.saved_tensors
        return vectors * (2 * grad)[:, None]


def squares(vectors: Tensor) -> Tensor:
    """Squared lengths of rows (n,)."""
    return _Squares.apply(vectors)


def poison(first: Tensor, *others: Tensor | None) -> Tensor:
    """0 if every entry is finite, NaN otherwise, without asking the device: added to a loss it makes NaN visible."""
    total = _not_finite(first)
    for tensor in others:
        if tensor is not None:
            total = total + _not_finite(tensor)
    return total


def _not_finite(tensor: Tensor) -> Tensor:
    low, high = torch.aminmax(tensor.detach())
    return low * 0 + high * 0


# ---------------------------------------------------------------------------------------------------- matrices


def unit_distance(dot: Tensor) -> Tensor:
    """sqrt(2 - 2 s), 0 where the vectors coincide; no gradient."""
    # The last step is not in place: older compilers lose the gradient of a result that was written into.
    return torch.threshold_(torch.sub(dot.new_full((), 2.0), dot, alpha=2), snap(dot.dtype), 0.0).sqrt()


def through_unit_distance_(grad: Tensor, distance: Tensor) -> Tensor:
    """The gradient for inner products from that for distances, -g / d or 0 where the vectors coincide, in place of both."""
    steep = torch.threshold_(distance, math.sqrt(flat(distance.dtype)), math.inf)
    return torch.addcdiv(grad.new_zeros(()), grad, steep, value=-1, out=grad)


class _UnitDistance(torch.autograd.Function):
    """sqrt(2 - 2 s), 0 and flat where the vectors coincide."""

    @staticmethod
    def forward(ctx: Any, dot: Tensor) -> Tensor:
        distance = unit_distance(dot)
        ctx.save_for_backward(distance)
        return distance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (distance,) = ctx.saved_tensors
        steep = torch.threshold(distance, math.sqrt(flat(distance.dtype)), math.inf)
        return torch.addcdiv(grad.new_zeros(()), grad, steep, value=-1, out=steep)


class _RootOfSquare(torch.autograd.Function):
    """sqrt of a squared distance, 0 and flat at 0."""

    @staticmethod
    def forward(ctx: Any, square: Tensor) -> Tensor:
        distance = torch.threshold(square, snap(square.dtype), 0.0).sqrt()
        ctx.save_for_backward(distance)
        return distance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (distance,) = ctx.saved_tensors
        steep = torch.threshold(distance, math.sqrt(flat(distance.dtype)), math.inf)
        return (grad / steep).mul_(0.5)


def root(square: Tensor) -> Tensor:
    """Distance from squared distance: clamped at 0, gradient 0 where two vectors coincide."""
    return _RootOfSquare.apply(square)


@dataclass(frozen=True)
class Space:
    """Which matrix a loss wants: how vectors are prepared and what an inner product becomes.

    ``unit`` decides between x = f / |f| and raw f, ``distance`` between similarities and distances; ``squared`` leaves
    raw distances squared, for losses that look at few of them.
    """

    unit: bool
    distance: bool
    squared: bool = False

    def prepare(self, vectors: Tensor) -> Tensor:
        return unit(vectors) if self.unit else raw(vectors)

    @property
    def needs_squares(self) -> bool:
        """Raw distances need the squared norms of rows and columns besides the inner products."""
        return self.distance and not self.unit

    def matrix(self, dot: Tensor, row_square: Tensor | None = None, column_square: Tensor | None = None) -> Tensor:
        """Similarities, or distances, from the inner products of prepared vectors."""
        if not self.distance:
            return dot
        if self.unit:
            return _UnitDistance.apply(dot)
        assert row_square is not None and column_square is not None
        square = torch.sub(row_square[:, None] + column_square, dot, alpha=2)
        return square if self.squared else root(square)

    def similarity(self, dot: Tensor, matrix: Tensor) -> Tensor:
        """What miners compare: the cosine or inner product; 1 - D^2 / 2 for raw distances (the cosine's equal there)."""
        if not self.needs_squares:
            return dot
        return 1 - (matrix if self.squared else matrix.square()) / 2


COSINE = Space(unit=True, distance=False)
UNIT_DISTANCE = Space(unit=True, distance=True)
DOT = Space(unit=False, distance=False)
RAW_SQUARE = Space(unit=False, distance=True, squared=True)


# ---------------------------------------------------------------------------------------------------- masks


class Few(NamedTuple):
    """A mask that counts few columns of each row: which (b, k), and how often (b, k); 0 fills up short rows."""

    columns: Tensor
    counts: Tensor


Mask = Tensor | Few


def take(values: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """Values that a mask may count, and their counts: the whole matrix, or the few columns side by side."""
    if isinstance(mask, Few):
        return values.gather(1, mask.columns), mask.counts
    return values, mask


class _Split(torch.autograd.Function):
    """The few columns beside the whole matrix; one gradient for both, where two would each fill a matrix."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, columns: Tensor, alone: bool) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(columns)
        ctx.alone = alone
        return values.gather(1, columns), values.view_as(values)

    @staticmethod
    def backward(ctx: Any, few_grad: Tensor, grad: Tensor) -> tuple[Tensor, None, None]:
        (columns,) = ctx.saved_tensors
        if ctx.alone:
            return grad.scatter_add_(1, columns, few_grad), None, None
        return grad.scatter_add(1, columns, few_grad), None, None


def split(
    values: Tensor, positive: Mask, negative: Mask, *, alone: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values and counts of the positives, then of the negatives.

    ``alone`` promises that one function reads the values of the negatives, and that its gradient is a new tensor nobody
    else holds: the gradient of the positives is then added into it instead of into a copy.
    """
    if isinstance(positive, Few) and not isinstance(negative, Few) and values.requires_grad:
        near, far = _Split.apply(values, positive.columns, alone)
        return near, positive.counts, far, negative
    return *take(values, positive), *take(values, negative)


def spread(mask: Mask, like: Tensor) -> Tensor:
    """The mask as a matrix of counts in the shape of ``like``."""
    if isinstance(mask, Few):
        return torch.zeros_like(like).scatter_add_(1, mask.columns, mask.counts)
    return mask


def few(mask: Mask, depth: int) -> Few:
    """The mask as at most ``depth`` columns a row."""
    if isinstance(mask, Few):
        return mask
    counts, columns = mask.topk(min(depth, mask.shape[1]), dim=1)
    return Few(columns, counts)


def number(mask: Mask) -> Tensor:
    """How many pairs of each row a mask counts."""
    return (mask.counts if isinstance(mask, Few) else mask).sum(1)


def kept(mask: Mask, keep: Tensor) -> Mask:
    """The mask times 0 or 1 per pair; ``keep`` is shaped like what ``take`` gives."""
    return Few(mask.columns, mask.counts * keep) if isinstance(mask, Few) else mask * keep


# ---------------------------------------------------------------------------------------------------- comparisons


def above(values: Tensor, threshold: Tensor | float) -> Tensor:
    """1.0 where values > threshold, else 0.0, constant in the gradient."""
    values = values.detach()
    if isinstance(threshold, Tensor):
        threshold = threshold.detach()
    if values.is_cuda or torch.compiler.is_compiling():
        return (values > threshold).to(values.dtype)
    # Writing the comparison straight into floats is ten times faster on a CPU than casting booleans.
    return torch.gt(values, threshold, out=torch.empty_like(values))


def below(values: Tensor, threshold: Tensor | float) -> Tensor:
    """1.0 where values < threshold, else 0.0, constant in the gradient."""
    values = values.detach()
    if isinstance(threshold, Tensor):
        threshold = threshold.detach()
    if values.is_cuda or torch.compiler.is_compiling():
        return (values < threshold).to(values.dtype)
    return torch.lt(values, threshold, out=torch.empty_like(values))


# ---------------------------------------------------------------------------------------------------- reductions


def safe_exp_(values: Tensor) -> Tensor:
    """exp in place that stops at the smallest normal number: denormal results are a hundred times slower on a CPU."""
    return values.clamp_(min=math.log(torch.finfo(values.dtype).tiny) + 1e-3).exp_()


def hide(values: Tensor, mask: Tensor) -> Tensor:
    """Values where the mask counts, far below every value elsewhere."""
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
    if values.device.type != "cpu" or wide < 8 * STRETCH or torch.compiler.is_compiling():
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
    return torch.softmax(values, 1, out=None if torch.compiler.is_compiling() else values)


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, mask: Tensor, one: bool) -> Tensor:
        hidden = hide(values, mask)
        top = hidden.amax(1)
        part = softmax_(hidden)
        # The largest share is that of the top, so all of them were divided by its inverse.
        rest = part.amax(1).log()
        part.mul_(mask)  # a pair may count more than once
        total = part.sum(1)
        value = torch.where(total > 0, top - rest + total.log(), -math.inf)
        share = ratio(torch.ones_like(total), total)
        ctx.save_for_backward(part, share * torch.sigmoid(value) if one else share)
        return torch.logaddexp(value, torch.zeros_like(value)) if one else value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        part, share = ctx.saved_tensors
        return part * (grad * share)[:, None], None, None


def counted_logsumexp(values: Tensor, counts: Tensor, *, one: bool = False) -> Tensor:
    """log of the counted sum of exp(values) of each row, plus 1 inside the log if ``one``.

    An empty row gives -inf (0 with ``one``) and gradient 0.
    """
    return _LogSumExp.apply(values, counts, one)


class _LogOnePlusExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.save_for_backward(values)
        return _softplus(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (values,) = ctx.saved_tensors
        return grad * torch.sigmoid(values)


def _softplus(values: Tensor) -> Tensor:
    part = safe_exp_(values.abs().neg_())
    # What safe_exp_ held at the smallest normal number is 0.
    return torch.threshold_(part, 2 * torch.finfo(part.dtype).tiny, 0.0).log1p_().add_(values.clamp(min=0))


def log1pexp(values: Tensor) -> Tensor:
    """log(1 + exp(values)) without threshold or overflow."""
    return _LogOnePlusExp.apply(values)


class _SoftSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, counts: Tensor, scale: float, shift: float) -> Tensor:
        scaled = torch.add(values.new_full((), -scale * shift), values, alpha=scale)
        total = _softplus(scaled).mul_(counts).sum(1)
        ctx.save_for_backward(scaled.sigmoid_().mul_(counts))
        ctx.scale = scale
        return total

    @staticmethod
    @once_differentiable
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
    @once_differentiable
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
    return _CountAbove.apply(values, counts, levels, temperature)

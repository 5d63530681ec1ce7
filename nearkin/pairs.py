"""The pair currency: a matrix of similarities or distances between rows and columns, and two masks of counts.

A mask is a float tensor of non-negative counts with the shape of the matrix: 0 leaves a pair out, 1 counts it once,
2 twice (a random miner may draw a pair twice). Floats rather than booleans because a CPU multiplies floats at memory
speed while ``torch.where`` and boolean products run about thirty times slower. Where only few columns of a row count, as
with positives, a mask may be ``Few``: these columns and their counts side by side. ``take`` makes both look alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nearkin.tracing import traced

# Stands for "infinitely far below" in float32 sums without making inf - inf possible.
FAR = 1e30

NO_MATRIX = (
    "a mask must be read with nearkin.pairs.split or take, got Few used as a matrix: large batches name the few columns "
    "that count instead; write near, p, far, n = split(matrix, mined.positive, mined.negative)."
)


class Few(NamedTuple):
    """A mask that counts few columns of each row: which (b, k), and how often (b, k); 0 fills up short rows."""

    columns: Tensor
    counts: Tensor


Mask = Tensor | Few

# Operators that a tensor on the left hands over to what stands on the right, and others.
MIRRORED = ("add", "sub", "mul", "truediv", "matmul", "pow", "and", "or", "xor")
OTHERS = ("lt", "le", "gt", "ge", "neg", "invert", "abs")


def refuse_arithmetic(kind: Any, sentence: str) -> None:
    """Make a class that is easily taken for a matrix say what it is where somebody calculates with it."""

    def refused(*operands: object) -> Any:
        raise TypeError(sentence)

    for name in [*OTHERS, *MIRRORED, *(f"r{operator}" for operator in MIRRORED)]:
        setattr(kind, f"__{name}__", refused)


def _no_attribute(mask: Few, name: str) -> Any:
    raise AttributeError(NO_MATRIX if hasattr(Tensor, name) else f"Few has no attribute {name!r}")


refuse_arithmetic(Few, NO_MATRIX)
# Set here, so that a type checker still sees what Few has not.
setattr(Few, "__getattr__", _no_attribute)  # noqa: B010


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
        if ctx.alone and not torch.is_grad_enabled():
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


def above(values: Tensor, threshold: Tensor | float) -> Tensor:
    """1.0 where values > threshold, else 0.0, constant in the gradient."""
    values = values.detach()
    if isinstance(threshold, Tensor):
        threshold = threshold.detach()
    if values.is_cuda or traced():
        return (values > threshold).to(values.dtype)
    # Writing the comparison straight into floats is ten times faster on a CPU than casting booleans.
    return torch.gt(values, threshold, out=torch.empty_like(values))


def below(values: Tensor, threshold: Tensor | float) -> Tensor:
    """1.0 where values < threshold, else 0.0, constant in the gradient."""
    values = values.detach()
    if isinstance(threshold, Tensor):
        threshold = threshold.detach()
    if values.is_cuda or traced():
        return (values < threshold).to(values.dtype)
    return torch.lt(values, threshold, out=torch.empty_like(values))

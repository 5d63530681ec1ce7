"""What an inner product becomes: a similarity or a distance, of raw or of unit vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nearkin.derivatives import once
from nearkin.tracing import by_engine
from nearkin.vectors import raw, unit


def snap(dtype: torch.dtype) -> float:
    """Squared distances up to this are rounding noise of equal vectors and count as 0."""
    return 1e-14 if dtype == torch.float64 else 1e-6


def flat(dtype: torch.dtype) -> float:
    """Squared distances up to this have gradient 0: the root's slope is unbounded there."""
    return 1e-12 if dtype == torch.float64 else 1e-6


def unit_distance(dot: Tensor) -> Tensor:
    """sqrt(2 - 2 s), 0 where the vectors coincide; no gradient."""
    square = torch.sub(dot.new_full((), 2.0), dot, alpha=2)
    if by_engine():
        return square * _inverse_root(square, snap(dot.dtype))
    # The last step is not in place: older compilers lose the gradient of a result that was written into.
    return torch.threshold_(square, snap(dot.dtype), 0.0).sqrt()


def _inverse_root(square: Tensor, least: float) -> Tensor:
    """1 / sqrt(x), 0 up to the least: for a compiler, since a GPU has an instruction for it, and the root takes many."""
    return torch.where(square > least, square.rsqrt(), 0)


def through_unit_distance_(grad: Tensor, distance: Tensor, dot: Tensor) -> Tensor:
    """The gradient for inner products from that for distances, -g / d or 0 where the vectors coincide, in place of both."""
    if by_engine():
        # Of the inner products themselves, so that a compiler sees the reciprocal root that the distance was made of.
        square = torch.sub(dot.new_full((), 2.0), dot, alpha=2)
        return -grad * _inverse_root(square, flat(dot.dtype))
    steep = torch.threshold_(distance, math.sqrt(flat(distance.dtype)), math.inf)
    return torch.addcdiv(grad.new_zeros(()), grad, steep, value=-1, out=grad)


class _UnitDistance(torch.autograd.Function):
    """sqrt(2 - 2 s), 0 and flat where the vectors coincide."""

    @staticmethod
    def forward(ctx: Any, dot: Tensor) -> Tensor:
        distance = unit_distance(dot)
        # On a CPU one matrix is kept, not two.
        ctx.save_for_backward(distance, dot if by_engine() else None)
        return distance

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        distance, dot = ctx.saved_tensors
        if dot is not None:
            return through_unit_distance_(grad, distance, dot)
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
    @once
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

"""Rows of vectors on a GPU in one pass each: scaled to length 1, and the gradient that goes back through that."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit  # type: ignore[untyped-decorator]
def _unit(vectors, inverse, out, DIM: tl.constexpr, WIDE: tl.constexpr, OUT: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDE)
    there = column < DIM
    values = tl.load(vectors + row * DIM + column, mask=there, other=0.0).to(tl.float32)
    # float64 holds the square of every float32, so nothing overflows or vanishes.
    wide = values.to(tl.float64)
    norm = tl.sqrt(tl.sum(wide * wide, 0))
    found = tl.where(norm < 1e-30, 0.0, 1.0 / norm).to(tl.float32)
    tl.store(inverse + row, found)
    if OUT:
        tl.store(out + row * DIM + column, (values * found).to(out.dtype.element_ty), mask=there)


@triton.jit  # type: ignore[untyped-decorator]
def _through(  # type: ignore[no-untyped-def]
    grad, vectors, inverse, factor, out, limit, DIM: tl.constexpr, WIDE: tl.constexpr, FACTOR: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDE)
    there = column < DIM
    place = row * DIM + column
    slope = tl.load(grad + place, mask=there, other=0.0)
    unit = tl.load(vectors + place, mask=there, other=0.0).to(tl.float32) * tl.load(inverse + row)
    slope -= unit * tl.sum(slope * unit, 0)
    if FACTOR:
        slope *= tl.load(factor + row)
    # Held to the range of 16 bits, if it is kept in these; comparisons let NaN pass.
    slope = tl.where(slope > limit, limit, tl.where(slope < -limit, -limit, slope))
    tl.store(out + place, slope.to(out.dtype.element_ty), mask=there)


def unit(vectors: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Rows scaled to length 1 (n, d) in that type, and 1 / |f| (n, 1) in float32; 0 for a zero row."""
    vectors = vectors.contiguous()
    out = torch.empty_like(vectors, dtype=dtype)
    return out, _scaled(vectors, out)


def inverse_norms(vectors: Tensor) -> Tensor:
    """1 / |f| (n, 1) of rows in float32; 0 for a zero row."""
    return _scaled(vectors.contiguous(), None)


def _scaled(vectors: Tensor, out: Tensor | None) -> Tensor:
    inverse = vectors.new_empty(len(vectors), 1, dtype=torch.float32)
    dim, given = vectors.shape[1], vectors if out is None else out
    with torch.cuda.device_of(vectors):
        _unit[(len(vectors),)](
            vectors, inverse, given, DIM=dim, WIDE=triton.next_power_of_2(dim), OUT=out is not None, num_warps=4
        )
    return inverse


def through_unit(grad: Tensor, vectors: Tensor, inverse: Tensor, factor: Tensor | None, out: Tensor) -> Tensor:
    """The gradient for rows f from that for f / |f|, times |f| and ``factor`` (n, 1), into ``out``, which may be ``grad``;
    ``grad`` is in float32 and ``inverse`` (n, 1) is 1 / |f|."""
    vectors, dim = vectors.contiguous(), vectors.shape[1]
    grad = grad if out is grad else grad.contiguous()
    assert grad.is_contiguous() and out.is_contiguous()
    limit = torch.finfo(out.dtype).max if out.element_size() == 2 else math.inf
    with torch.cuda.device_of(vectors):
        _through[(len(vectors),)](
            grad, vectors, inverse, inverse if factor is None else factor, out, limit,
            DIM=dim, WIDE=triton.next_power_of_2(dim), FACTOR=factor is not None, num_warps=4,
        )  # fmt: skip
    return out

"""The ranked list of 16-bit batches on a GPU by hand: two walks over a block of inner products, with fewer instructions for
each entry than a compiled step has.

The first walk gives each row its value and the two factors of its slopes, the second writes the slopes over the inner
products.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

STRETCH = 2048
"""Columns of a row that a group of threads looks at together."""
NEAR = 0.25
"""Farther than any vector but zero can seem from itself, rounded to 16 bits; what zero is multiplied by does not matter."""


@triton.jit
def _inverse_distance(cosine, snap):  # type: ignore[no-untyped-def]
    """1 / d and d of unit vectors, both 0 where they coincide."""
    square = 2 - 2 * cosine
    inverse = tl.where(square > snap, tl.rsqrt(square), 0.0)
    return inverse, square * inverse


@triton.jit  # type: ignore[untyped-decorator]
def _read(dot, others, row, column, columns, label, EVEN: tl.constexpr):  # type: ignore[no-untyped-def]
    """Cosines of a stretch of a row, which of them are of its class, and which of them there are."""
    place = dot + row.to(tl.int64) * columns + column
    if EVEN:
        return tl.load(place).to(tl.float32), tl.load(others + column) == label, column >= 0
    there = column < columns
    cosine = tl.load(place, mask=there, other=-1.0).to(tl.float32)
    return cosine, tl.load(others + column, mask=there, other=0) == label, there


@triton.jit  # type: ignore[untyped-decorator]
def _statistics(  # type: ignore[no-untyped-def]
    dot, labels, others, own, upstream, values, pulls, pushes, columns, alpha, inside, steep, balance, snap,
    OWN: tl.constexpr, EVEN: tl.constexpr, STRETCH: tl.constexpr,
):  # fmt: skip
    """The value of a row, and what its positives' and its negatives' slopes are multiplied by."""
    row = tl.program_id(0)
    label = tl.load(labels + row)
    number = tl.zeros((STRETCH,), dtype=tl.float32)
    beyond = tl.zeros((STRETCH,), dtype=tl.float32)
    weight = tl.zeros((STRETCH,), dtype=tl.float32)
    weighted = tl.zeros((STRETCH,), dtype=tl.float32)
    for begin in range(0, columns, STRETCH):
        column = begin + tl.arange(0, STRETCH)
        cosine, same, there = _read(dot, others, row, column, columns, label, EVEN)
        _, distance = _inverse_distance(cosine, snap)
        share = tl.where(there & (distance < alpha) & (same == 0), tl.exp2(distance * steep), 0.0)
        weight += share
        weighted += share * distance
        outer = same & there & (distance > inside)
        number += tl.where(outer, 1.0, 0.0)
        beyond += tl.where(outer, distance, 0.0)
    count, total = tl.sum(number, 0), tl.sum(weight, 0)
    pulled = tl.sum(beyond, 0)
    if OWN:
        # The query itself is taken out once for the row, instead of being looked for in every column.
        mine = tl.load(own + row)
        known = (mine >= 0) & (mine < columns)  # nobody has looked at what is on a GPU
        cosine = tl.load(dot + row.to(tl.int64) * columns + mine, mask=known, other=1.0).to(tl.float32)
        _, distance = _inverse_distance(cosine, snap)
        counted = known & (distance > inside) & (tl.load(others + mine, mask=known, other=0) == label)
        count -= tl.where(counted, 1.0, 0.0)
        pulled -= tl.where(counted, distance, 0.0)
    one_count, one_total = tl.where(count > 0, count, 1.0), tl.where(total > 0, total, 1.0)
    pull = tl.where(count > 0, pulled / one_count - inside, 0.0)
    push = tl.where(total > 0, alpha, 0.0) - tl.sum(weighted, 0) / one_total
    scale = tl.load(upstream + row)
    tl.store(values + row, pull + balance * push)
    tl.store(pulls + row, tl.where(count > 0, scale / one_count, 0.0))
    tl.store(pushes + row, tl.where(total > 0, -balance * scale / one_total, 0.0))


@triton.jit  # type: ignore[untyped-decorator]
def _slopes(  # type: ignore[no-untyped-def]
    dot, labels, others, own, pulls, pushes, columns, alpha, inside, steep, snap,
    OWN: tl.constexpr, EVEN: tl.constexpr, STRETCH: tl.constexpr,
):  # fmt: skip
    """The slopes of a stretch of a row, in place of its inner products."""
    row = tl.program_id(0)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    mine = tl.load(own + row) if OWN else -1
    cosine, same, there = _read(dot, others, row, column, columns, tl.load(labels + row), EVEN)
    inverse, distance = _inverse_distance(cosine, snap)
    push = tl.where(distance < alpha, tl.load(pushes + row) * tl.exp2(distance * steep), 0.0)
    pull = tl.where((column != mine) & (distance > inside), tl.load(pulls + row), 0.0)
    slope = -inverse * tl.where(same, pull, push)
    place = dot + row.to(tl.int64) * columns + column
    if EVEN:
        tl.store(place, slope.to(dot.dtype.element_ty))
    else:
        tl.store(place, slope.to(dot.dtype.element_ty), mask=there)


def step(
    dot: Tensor,
    labels: Tensor,
    others: Tensor,
    own: Tensor | None,
    upstream: Tensor,
    slopes: bool,
    same: bool,
    *,
    alpha: float,
    inside: float,
    temperature: float,
    balance: float,
    snap: float,
) -> Tensor:
    """The values (b,) of rows of cosines ``dot`` (b, m), which become, if wanted, the slopes of upstream . values.

    ``labels`` (b,) and ``others`` (m,) are whole numbers, ``own`` (b,) the column of each query itself or None; ``same``: it
    holds the very vector of the query.
    """
    rows, columns = dot.shape
    labels, others = labels.contiguous(), others.contiguous()
    own = None if own is None else own.contiguous()
    values, pulls, pushes = torch.empty_like(upstream), torch.empty_like(upstream), torch.empty_like(upstream)
    steep = -temperature * math.log2(math.e)
    mine = labels if own is None else own
    with torch.cuda.device_of(dot):
        _statistics[(rows,)](
            dot, labels, others, mine, upstream, values, pulls, pushes, columns, alpha, inside, steep, balance, snap,
            OWN=own is not None, EVEN=columns % STRETCH == 0, STRETCH=STRETCH, num_warps=8,
        )  # fmt: skip
        if slopes:
            _slopes[(rows, triton.cdiv(columns, STRETCH))](
                dot, labels, others, mine, pulls, pushes, columns, alpha, inside, steep, snap,
                OWN=own is not None and not (same and inside > NEAR), EVEN=columns % STRETCH == 0, STRETCH=STRETCH,
                num_warps=8,
            )  # fmt: skip
    return values

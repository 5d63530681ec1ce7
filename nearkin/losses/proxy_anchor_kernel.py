"""Proxy-Anchor of large 16-bit batches on a GPU: some samples at a time against all proxies, twice.

A proxy needs two sums over all samples before any pair has its weight. The engine, which takes rows whole, so keeps the
gradients of all samples in 32 bits until the last proxies are done. Here the first walk over the samples adds up the sums,
the second forms the inner products once more and finishes the gradient of a chunk of samples on the spot: one matrix
product more, and little memory beyond inputs and gradients.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from nearkin.derivatives import once
from nearkin.engine.product import add_product, product
from nearkin.engine.rows_kernel import inverse_norms, through_unit, unit

ENTRIES = 15 * 2**21
"""Inner products of a chunk, at most."""
STRETCH = 1024
"""Samples of a row that a group of threads looks at together."""
EVEN = 16
"""Chunks begin at multiples of this, and kernels count in it, so that several labels are read at once."""


class Settings(NamedTuple):
    margin: float
    scale: float


@triton.jit  # type: ignore[untyped-decorator]
def _read(place, labels, inverse, row, column, start, columns, margin, steep, EVEN: tl.constexpr):  # type: ignore[no-untyped-def]
    """e^(-scale (s - margin)) of samples of the row's class, e^(scale (s + margin)) of others; which is which; 1 / |f|."""
    there = column < columns
    sample = start * EVEN + column
    length = tl.load(inverse + sample, mask=there, other=0.0)
    cosine = tl.load(place, mask=there, other=0.0).to(tl.float32) * length
    same = tl.load(labels + sample, mask=there, other=-1) == row
    power = tl.exp2((margin + tl.where(same, -cosine, cosine)) * steep)
    return tl.where(there, power, 0.0), same, length, there


@triton.jit(do_not_specialize=["start"])  # type: ignore[untyped-decorator]
def _add(  # type: ignore[no-untyped-def]
    dot, labels, inverse, pulls, pushes, start, columns, margin, steep, STRETCH: tl.constexpr, EVEN: tl.constexpr
):
    """Add the sums over a chunk of samples to those of the proxy."""
    row = tl.program_id(0)
    pull = tl.zeros((STRETCH,), dtype=tl.float32)
    push = tl.zeros((STRETCH,), dtype=tl.float32)
    for begin in range(0, columns, STRETCH):
        column = begin + tl.arange(0, STRETCH)
        place = dot + row.to(tl.int64) * columns + column
        power, same, _, _ = _read(place, labels, inverse, row, column, start, columns, margin, steep, EVEN)
        pull += tl.where(same, power, 0.0)
        push += tl.where(same, 0.0, power)
    tl.store(pulls + row, tl.load(pulls + row) + tl.sum(pull, 0))
    tl.store(pushes + row, tl.load(pushes + row) + tl.sum(push, 0))


@triton.jit(do_not_specialize=["start"])  # type: ignore[untyped-decorator]
def _slopes(  # type: ignore[no-untyped-def]
    dot, labels, inverse, pulls, pushes, start, columns, margin, steep, STRETCH: tl.constexpr, EVEN: tl.constexpr
):
    """The slopes of a stretch of a row, over the lengths of its samples, in place of the inner products."""
    row = tl.program_id(0)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    place = dot + row.to(tl.int64) * columns + column
    power, same, length, there = _read(place, labels, inverse, row, column, start, columns, margin, steep, EVEN)
    slope = tl.where(same, tl.load(pulls + row), tl.load(pushes + row)) * power * length
    tl.store(place, slope.to(dot.dtype.element_ty), mask=there)


class _Chunk(NamedTuple):
    """Some samples, from ``start`` on, and where their inner products with all proxies go: what both walks need."""

    start: int
    samples: Tensor
    flipped: Tensor
    dot: Tensor


class _Walk:
    """The two walks over the samples of a batch. The host has little time for a chunk, so it does nothing twice."""

    def __init__(self, embeddings: Tensor, proxies: Tensor, labels: Tensor, settings: Settings) -> None:
        self.embeddings, self.proxies = embeddings.detach().contiguous(), proxies.detach().contiguous()
        self.labels, self.settings = labels.int().contiguous(), settings
        self.rows, self.row_inverse = unit(self.proxies, embeddings.dtype)
        self.inverse = inverse_norms(self.embeddings)
        # Even chunks, so that few kernels are compiled.
        count = -(-len(embeddings) * len(proxies) // ENTRIES)
        self.width = -(-len(embeddings) // (EVEN * count)) * EVEN
        room = self.rows.new_empty(len(proxies) * self.width)
        self.chunks = [
            _Chunk(start, some, some.T, room[: len(proxies) * len(some)].view(len(proxies), len(some)))
            for start, some in zip(itertools.count(0, self.width), self.embeddings.split(self.width), strict=False)
        ]

    def sums(self) -> tuple[Tensor, Tensor]:
        """Of each proxy, over its samples and over the others."""
        pulls, pushes = self.inverse.new_zeros(2, len(self.rows))
        with torch.cuda.device_of(self.rows):
            for chunk in self.chunks:
                product(self.rows, chunk.flipped, chunk.dot)
                _add[(len(self.rows),)](*self._given(chunk, pulls, pushes), STRETCH=STRETCH, EVEN=EVEN, num_warps=4)
        return pulls, pushes

    def gradients(self, pulls: Tensor, pushes: Tensor, needs: tuple[bool, bool]) -> tuple[Tensor | None, Tensor | None]:
        """Of the samples and of the proxies, if needed, from what the exponentials are multiplied by."""
        samples = torch.empty_like(self.embeddings)
        proxies = torch.zeros_like(self.rows, dtype=torch.float32)
        room = self.inverse.new_empty(self.width, self.embeddings.shape[1])
        parts = zip(samples.split(self.width), self.inverse.split(self.width), self.chunks, strict=True)
        with torch.cuda.device_of(self.rows):
            for found, inverse, chunk in parts:
                product(self.rows, chunk.flipped, chunk.dot)
                grid = len(self.rows), triton.cdiv(len(found), STRETCH)
                _slopes[grid](*self._given(chunk, pulls, pushes), STRETCH=STRETCH, EVEN=EVEN, num_warps=4)
                if needs[1]:
                    add_product(proxies, chunk.dot, chunk.samples)
                if needs[0]:
                    slope = product(chunk.dot.T, self.rows, room if len(found) == len(room) else room[: len(found)])
                    through_unit(slope, chunk.samples, inverse, None, found)
        through_unit(proxies, self.proxies, self.row_inverse, self.row_inverse, proxies)
        return samples if needs[0] else None, proxies if needs[1] else None

    def _given(self, chunk: _Chunk, pulls: Tensor, pushes: Tensor) -> tuple[Any, ...]:
        margin, scale = self.settings
        facts = chunk.start // EVEN, len(chunk.samples), margin, scale * math.log2(math.e)
        return chunk.dot, self.labels, self.inverse, pulls, pushes, *facts


class _Walked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, embeddings: Tensor, proxies: Tensor, labels: Tensor, share: Tensor, settings: Settings, wanted: bool
    ) -> Tensor:
        walk = _Walk(embeddings, proxies, labels, settings)
        pulls, pushes = walk.sums()
        value = (share * pulls.log1p() + pushes.log1p()).mean()
        ctx.save_for_backward(embeddings, proxies, labels, share)
        ctx.settings = settings
        # The first backward scales these in place, a second one forms them again.
        ctx.needs = ctx.needs_input_grad[:2]
        ctx.grads = _slope(walk, pulls, pushes, share, ctx.needs) if wanted and any(ctx.needs) else None
        return value

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        embeddings, proxies, labels, share = ctx.saved_tensors
        found, ctx.grads = ctx.grads, None
        if found is None:
            walk = _Walk(embeddings, proxies, labels, ctx.settings)
            found = _slope(walk, *walk.sums(), share, ctx.needs)
        # As a tensor of one dimension the factor keeps its digits until the products are rounded.
        samples, rows = (None if x is None else torch.mul(x, grad[None], out=x) for x in found)
        return samples, rows, None, None, None, None


def _slope(
    walk: _Walk, pulls: Tensor, pushes: Tensor, share: Tensor, needs: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    each = walk.settings.scale / len(pulls)
    return walk.gradients(-each * share / (1 + pulls), each / (1 + pushes), needs)


def walked(embeddings: Tensor, proxies: Tensor, labels: Tensor, share: Tensor, settings: Settings) -> Tensor:
    """The mean over proxies of share log(1 + sum of e^(-scale (s - margin))) + log(1 + sum of e^(scale (s + margin)))."""
    value: Tensor = _Walked.apply(embeddings, proxies, labels, share, settings, torch.is_grad_enabled())
    return value

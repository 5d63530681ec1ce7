"""The shift behind a convolution, the sum with a shortcut and the rectifier in one pass over a map on a GPU, and back.

A map is (n, c, h, w) with the channels of a pixel side by side. Done one after the other, these steps read and write every
map several times, which takes longer than the convolutions.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048
"""Numbers of a program on the way forward."""
ROWS, WIDE, TURNS = 32, 64, 16
"""On the way back: pixels and channels at a time, and how often, for each program."""


@triton.jit  # type: ignore[untyped-decorator]
def _forward(value, shift, short, total, CHANNELS: tl.constexpr, SHORT: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = place < total
    found = tl.load(value + place, mask=there, other=0.0).to(tl.float32)
    found += tl.load(shift + (place % CHANNELS).to(tl.int32))
    if SHORT:
        found += tl.load(short + place, mask=there, other=0.0).to(tl.float32)
    # As a comparison, which lets NaN pass.
    tl.store(value + place, tl.where(found <= 0, 0.0, found).to(value.dtype.element_ty), mask=there)


@triton.jit  # type: ignore[untyped-decorator]
def _backward(  # type: ignore[no-untyped-def]
    grad, found, out, sums, pixels,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, TURNS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    total = tl.zeros((ROWS, WIDE), dtype=tl.float32)
    for turn in range(TURNS):
        pixel = (tl.program_id(0) * TURNS + turn) * ROWS + tl.arange(0, ROWS)
        there = (pixel < pixels)[:, None] & (channel < CHANNELS)[None, :]
        place = pixel[:, None].to(tl.int64) * CHANNELS + channel[None, :]
        slope = tl.load(grad + place, mask=there, other=0.0)
        slope = tl.where(tl.load(found + place, mask=there, other=0.0) <= 0, 0.0, slope)
        tl.store(out + place, slope, mask=there)
        total += slope.to(tl.float32)
    if SUMS:
        tl.store(sums + tl.program_id(0) * CHANNELS + channel, tl.sum(total, 0), mask=channel < CHANNELS)


class _Bend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, shift: Tensor, short: Tensor | None) -> Tensor:
        with torch.cuda.device_of(value):
            _forward[(triton.cdiv(value.numel(), BLOCK),)](
                value, shift, value if short is None else short, value.numel(),
                CHANNELS=value.shape[1], SHORT=short is not None, BLOCK=BLOCK, num_warps=8,
            )  # fmt: skip
        ctx.mark_dirty(value)
        ctx.save_for_backward(value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        (found,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate once more
            slope = torch.where(found.detach() <= 0, 0, grad)
            return slope, slope.float().sum((0, 2, 3)), slope if ctx.needs_input_grad[2] else None
        grad = grad.contiguous(memory_format=torch.channels_last)
        out, channels = torch.empty_like(found), found.shape[1]
        pixels = found.numel() // channels
        grid = triton.cdiv(pixels, ROWS * TURNS), triton.cdiv(channels, WIDE)
        wanted = ctx.needs_input_grad[1]
        sums = found.new_empty(grid[0], channels, dtype=torch.float32) if wanted else out
        with torch.cuda.device_of(found):
            _backward[grid](
                grad, found, out, sums, pixels,
                CHANNELS=channels, ROWS=ROWS, WIDE=WIDE, TURNS=TURNS, SUMS=wanted, num_warps=4,
            )  # fmt: skip
        return out, sums.sum(0) if wanted else None, out if ctx.needs_input_grad[2] else None


def bend(value: Tensor, shift: Tensor, short: Tensor | None) -> Tensor:
    """max(0, value + shift + short), in place of ``value``; ``shift`` (c,) is in float32, the maps are of one type and
    shape, and ``short`` may be None."""
    found: Tensor = _Bend.apply(value, shift, short)
    return found

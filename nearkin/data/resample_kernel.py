"""Boxes of images to tensors on a GPU in one pass: each output pixel adds up the few source pixels that have a weight."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

PIXELS = 256
"""Output pixels of a program."""
FACTS = 5
"""Numbers of an axis: where it starts, step, how many source pixels there are, and from where to where is inside."""


@triton.jit
def _axis(facts, index):  # type: ignore[no-untyped-def]
    """Where output pixels lie in the source, how steep their filter is, the first source pixel it may touch, how many source
    pixels there are, and whether they lie inside the image."""
    step = tl.load(facts + 1)
    place = tl.load(facts) + (index.to(tl.float32) + 0.5) * step
    reach = tl.maximum(tl.abs(step), 1.0)
    inside = (place >= tl.load(facts + 3)) & (place < tl.load(facts + 4))
    return place, 1.0 / reach, tl.floor(place - reach + 0.5), tl.load(facts + 2), inside


@triton.jit
def _weight(source, place, steep, count):  # type: ignore[no-untyped-def]
    """Of a source pixel in an output pixel: a triangle, 0 beyond the source."""
    weight = tl.maximum(1.0 - tl.abs(source + 0.5 - place) * steep, 0.0)
    return tl.where((source >= 0) & (source < count), weight, 0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _boxes(  # type: ignore[no-untyped-def]
    pixels, lines, numbers, factor, bias, fill, out, across, down, by_image, by_channel, by_row, by_column,
    SIZE: tl.constexpr, PIXELS: tl.constexpr, FACTS: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(0)
    number = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    there = number < SIZE * SIZE
    row, column = number // SIZE, number % SIZE
    x, steep_x, first_x, count_x, inside_x = _axis(numbers + image * 2 * FACTS, column)
    y, steep_y, first_y, count_y, inside_y = _axis(numbers + image * 2 * FACTS + FACTS, row)
    shown = inside_x & inside_y
    begin, stride = pixels + tl.load(lines + image * 2), tl.load(lines + image * 2 + 1)
    red = tl.zeros((PIXELS,), dtype=tl.float32)
    green = tl.zeros((PIXELS,), dtype=tl.float32)
    blue = tl.zeros((PIXELS,), dtype=tl.float32)
    total = tl.zeros((PIXELS,), dtype=tl.float32)
    for tap_y in range(down):
        source_y = first_y + tap_y
        weight_y = _weight(source_y, y, steep_y, count_y)
        line = begin + source_y.to(tl.int64) * stride
        for tap_x in range(across):
            source_x = first_x + tap_x
            weight = weight_y * _weight(source_x, x, steep_x, count_x)
            seen = there & shown & (weight > 0)
            place = line + source_x.to(tl.int32) * 3
            red += weight * tl.load(place, mask=seen, other=0).to(tl.float32)
            green += weight * tl.load(place + 1, mask=seen, other=0).to(tl.float32)
            blue += weight * tl.load(place + 2, mask=seen, other=0).to(tl.float32)
            total += weight
    share = 1.0 / tl.where(total > 0, total, 1.0)
    target = out + image.to(tl.int64) * by_image + row * by_row + column * by_column
    _put(target, red * share, shown, there, factor, bias, fill)
    _put(target + by_channel, green * share, shown, there, factor + 1, bias + 1, fill + 1)
    _put(target + 2 * by_channel, blue * share, shown, there, factor + 2, bias + 2, fill + 2)


@triton.jit
def _put(target, value, shown, there, factor, bias, fill):  # type: ignore[no-untyped-def]
    """Write one channel as the network wants it."""
    value = tl.where(shown, value * tl.load(factor) + tl.load(bias), tl.load(fill))
    tl.store(target, value.to(target.dtype.element_ty), mask=there)


def boxes(
    pixels: Tensor,
    lines: Tensor,
    numbers: Tensor,
    colours: tuple[Tensor, Tensor, Tensor],
    taps: tuple[int, int],
    out: Tensor,
) -> Tensor:
    """Fill ``out`` (n, 3, size, size), of any type and layout.

    ``lines`` (n, 2): the first byte of each box and the bytes of a row of its image; ``numbers`` (n, 10): the axes across
    and down (``FACTS``); ``colours``: factor, bias and fill of the three channels; ``taps``: most source pixels of an output
    pixel across and down.
    """
    size = out.shape[-1]
    with torch.cuda.device_of(pixels):
        _boxes[(len(out), triton.cdiv(size * size, PIXELS))](
            pixels, lines, numbers, *colours, out, *taps, *out.stride(),
            SIZE=size, PIXELS=PIXELS, FACTS=FACTS, num_warps=4,
        )  # fmt: skip
    return out

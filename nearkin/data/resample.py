"""Boxes of images to tensors: cut, shrink or enlarge, mirror and normalise a batch on the device where its pixels lie.

The filter is the antialiased triangle of Pillow's BILINEAR and of ``torch.nn.functional.interpolate(antialias=True)``:
the output pixel i of an axis lies at c = start + (i + 1/2) * length / size in the source, source pixel j counts with
max(0, 1 - |j + 1/2 - c| / max(1, length / size)), and the weights are divided by their sum.

- ``around=True``: the filter sees all pixels of the image, as if the whole image were resized and then cut (Pillow's
  ``resize(box=...)``). ``around=False``: it sees the box only, widened to whole pixels, as if the image were cut first.
- Output pixels whose place lies outside the image have the colour ``fill``, the others never contain any of it.
- A box of exactly ``size`` x ``size`` pixels at a whole position is copied: its values are exact.

Four ways compute it: *cut* copies such boxes; *taps* (on the CPU) adds up the few pixels that have a weight, *kernel* (on a
GPU) does the same in one pass; *matrix* (elsewhere) multiplies the padded boxes by two matrices of weights in float16, in
which 8-bit values are exact. The first is taken when the whole batch allows it. No way makes the host wait for the device:
what decides about a shape is known on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from nearkin import checks, kernels

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Way = Literal["cut", "taps", "kernel", "matrix"]
WAYS = ("cut", "taps", "kernel", "matrix")

MOST_ELEMENTS = 2**28
"""Pixels x channels of the padded boxes that *matrix* holds at a time: half a gigabyte in float16."""

CACHED_ELEMENTS = 2**18
"""Values that *taps* works on at a time: a megabyte in float32, or one image if that is larger."""

STEP = 32
"""Padded boxes are a multiple of this high and wide, so that few different shapes occur."""


@dataclass(frozen=True)
class Colours:
    """How 8-bit values become network input: ``value * factor + bias`` per channel; ``fill`` is already such a value."""

    factor: Tensor
    bias: Tensor
    fill: Tensor

    @classmethod
    def of(
        cls,
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0),
        fill: Sequence[float] | None = None,
        device: torch.device | str = "cpu",
    ) -> Colours:
        """(value / 255 - mean) / std with ``mean``, ``std`` and ``fill`` on the scale from 0 to 1; fill None: the mean.

        >>> Colours.of(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)).bias.flatten().tolist()
        [-2.0, -2.0, -2.0]
        """
        for name, value in (("mean", mean), ("std", std), ("fill", mean if fill is None else fill)):
            if len(value) != 3 or not all(np.isfinite(value)):
                raise ValueError(f"{name} must be three finite numbers, red green blue, got {value!r}; pass three.")
        if min(std) <= 0:
            raise ValueError(f"std must be above 0 in every channel, got {tuple(std)!r}; pass the spread of the data.")
        centre, spread = np.asarray(mean, np.float64), np.asarray(std, np.float64)
        padding = (centre if fill is None else np.asarray(fill, np.float64)) - centre
        values = (1 / (255 * spread), -centre / spread, padding / spread)
        return cls(*(torch.tensor(value, dtype=torch.float32, device=device).view(1, 3, 1, 1) for value in values))


def resample(
    pixels: Tensor,
    offset: NDArray[Any],
    height: NDArray[Any],
    width: NDArray[Any],
    boxes: Floats,
    flip: NDArray[np.bool_] | None = None,
    *,
    size: int,
    colours: Colours,
    around: bool = True,
    dtype: torch.dtype = torch.float32,
    channels_last: bool = False,
    way: Way | None = None,
) -> Tensor:
    """Boxes of n images of a ragged buffer as (n, 3, size, size).

    - ``pixels`` (bytes,) uint8 on any device; image i starts at ``offset[i]``, row by row, ``height[i]`` x ``width[i]`` x 3;
    - ``boxes`` (n, 4): left, top, width, height in source pixels; ``flip`` (n,): mirror these;
    - the arrays are NumPy's, on the host; ``colours`` lies on the device of ``pixels``;
    - ``way``: None chooses.

    >>> pixels, box = torch.arange(4 * 4 * 3, dtype=torch.uint8), np.array([[1.0, 2.0, 2.0, 2.0]])
    >>> found = resample(pixels, np.array([0]), np.array([4]), np.array([4]), box, size=2, colours=Colours.of())
    >>> (found[0, 0] * 255).round().tolist()
    [[27.0, 30.0], [39.0, 42.0]]
    """
    place = _Place(*(np.asarray(part, np.int64) for part in (offset, height, width)))
    boxes = np.asarray(boxes, np.float64)
    flips = np.zeros(len(boxes), bool) if flip is None else np.asarray(flip, bool)
    _check(pixels, place, boxes, flips)
    whole = is_cut(place.height, place.width, boxes, size)
    if way is None:
        way = "cut" if whole else "taps" if pixels.is_cpu else "kernel" if _kernel_there(pixels) else "matrix"
    elif way not in WAYS:
        raise ValueError(checks.unknown("way", way, WAYS))
    elif {"cut": not whole, "taps": not pixels.is_cpu, "kernel": not _kernel_there(pixels), "matrix": False}[way]:
        raise ValueError(f"way {way!r} does not suit these boxes or this device; leave it out to choose.")
    form = torch.channels_last if channels_last else torch.contiguous_format
    if not len(boxes):
        return torch.empty(0, 3, size, size, dtype=dtype, device=pixels.device)
    if way == "cut":
        return _cut(pixels, place, boxes, flips, size, colours, form).to(dtype)
    axes = _axes(place, boxes, flips, size, around)
    if way == "kernel":
        found = torch.empty((len(boxes), 3, size, size), dtype=dtype, device=pixels.device, memory_format=form)
        return _kernel(pixels, place, axes, colours, found)
    function = _taps if way == "taps" else _matrix
    # A training loop's autocast must not decide about the precision of pixels.
    with torch.autocast(pixels.device.type, enabled=False):
        found = function(pixels, place, axes, size, colours, form)
    return found.to(dtype)


def _kernel_there(pixels: Tensor) -> bool:
    """Whether kernels can be run where the pixels are, or their interpreter is."""
    return (pixels.is_cuda or kernels.interpreted()) and kernels.usable()


def is_cut(height: NDArray[Any], width: NDArray[Any], boxes: Floats, size: int) -> bool:
    """Whether all boxes can be copied: of the output's size, at whole positions inside their images."""
    left, top, wide, tall = boxes.T
    inside = (left >= 0) & (top >= 0) & (left + wide <= width) & (top + tall <= height)
    return bool(((wide == size) & (tall == size) & inside & (left % 1 == 0) & (top % 1 == 0)).all())


@dataclass(frozen=True)
class _Place:
    """Where images lie in the buffer."""

    offset: Whole
    height: Whole
    width: Whole


def _check(pixels: Tensor, place: _Place, boxes: Floats, flips: NDArray[np.bool_]) -> None:
    n = len(boxes)
    if boxes.shape != (n, 4) or any(len(part) != n for part in (place.offset, place.height, place.width, flips)):
        shapes = [part.shape for part in (place.offset, place.height, place.width, boxes, flips)]
        raise ValueError(f"offset, height, width, boxes and flip must have one entry per image, got shapes {shapes}.")
    if pixels.dtype != torch.uint8 or pixels.dim() != 1:
        raise TypeError(f"pixels must be a flat uint8 tensor, got {pixels.dtype} of shape {tuple(pixels.shape)}.")
    if n and not (np.isfinite(boxes).all() and (boxes[:, 2:] > 0).all()):
        raise ValueError("boxes must be finite with a width and a height above 0, got others; check the geometry.")
    if n and (place.offset.min() < 0 or (place.offset + place.height * place.width * 3).max() > len(pixels)):
        raise ValueError(f"images must lie inside pixels ({len(pixels)} bytes), got offsets beyond; check the offsets.")


@dataclass(frozen=True)
class _Axis:
    """One axis of a batch; every coordinate counts from ``first``, the first source pixel that is read."""

    first: Whole
    count: Whole  # pixels that may have a weight
    start: Floats  # the box's edge from which output pixels count: the far one if mirrored
    step: Floats  # source pixels per output pixel; negative if mirrored
    low: Floats  # an output pixel is inside the image if its centre lies in [low, high)
    high: Floats


def _axes(place: _Place, boxes: Floats, flips: NDArray[np.bool_], size: int, around: bool) -> tuple[_Axis, _Axis]:
    none = np.zeros(len(boxes), bool)
    across = _axis(boxes[:, 0], boxes[:, 2], place.width, flips, size, around)
    return across, _axis(boxes[:, 1], boxes[:, 3], place.height, none, size, around)


def _axis(start: Floats, length: Floats, extent: Whole, flips: NDArray[np.bool_], size: int, around: bool) -> _Axis:
    step = length / size
    support = np.maximum(step, 1)
    low, high = np.zeros_like(start), extent.astype(np.float64)
    if not around:
        # A box beside its image sees the last pixel, of which nothing will be shown.
        low = np.minimum(np.maximum(low, np.floor(start)), np.maximum(low, high - 1))
        high = np.minimum(high, np.ceil(start + length))
    # The lowest and the highest pixel that any output pixel touches, inside what the filter may see.
    first = np.floor(start + step / 2 - support + 0.5).clip(low, np.maximum(low, high - 1))
    last = np.ceil(start + length - step / 2 + support - 0.5).clip(first + 1, np.maximum(first + 1, high))
    return _Axis(
        first.astype(np.int64),
        (last - first).astype(np.int64),
        np.where(flips, start + length, start) - first,
        np.where(flips, -step, step),
        -first,
        extent - first,
    )


def _inside(axis: _Axis, size: int) -> bool:
    """Whether every output pixel of the batch lies inside its image."""
    ends = np.stack([axis.start + axis.step / 2, axis.start + (size - 0.5) * axis.step])
    return bool(((ends >= axis.low) & (ends < axis.high)).all())


def _rows(pixels: Tensor, starts: Tensor, length: int) -> Tensor:
    """``length`` bytes from each start, (..., length), without an index for every byte."""
    overlapping = pixels.as_strided((len(pixels) - length + 1, length), (1, 1))
    return overlapping[starts]


def _cut(
    pixels: Tensor,
    place: _Place,
    boxes: Floats,
    flips: NDArray[np.bool_],
    size: int,
    colours: Colours,
    form: torch.memory_format,
) -> Tensor:
    stride = place.width * 3
    starts = place.offset + boxes[:, 1].astype(np.int64) * stride + boxes[:, 0].astype(np.int64) * 3
    if pixels.is_cpu:
        found = torch.empty((len(boxes), size, size * 3), dtype=torch.uint8, device=pixels.device)
        base = pixels.storage_offset()
        for i, (start, step) in enumerate(zip(starts.tolist(), stride.tolist(), strict=True)):
            found[i] = pixels.as_strided((size, size * 3), (step, 1), base + start)
        found = found.view(-1, size, size, 3)
        mirrored = torch.from_numpy(np.flatnonzero(flips))
        if len(mirrored):
            found[mirrored] = found[mirrored].flip(2)
    else:
        facts = to_device(np.stack([starts, stride, flips], 1), pixels.device)
        lines = facts[:, :1] + facts[:, 1:2] * torch.arange(size, device=pixels.device)
        found = _rows(pixels, lines, size * 3).view(-1, size, size, 3)
        if flips.any():
            found = torch.where(facts[:, 2].bool()[:, None, None, None], found.flip(2), found)
    scaled = torch.empty((len(boxes), 3, size, size), dtype=torch.float32, device=pixels.device, memory_format=form)
    return scaled.copy_(found.permute(0, 3, 1, 2)).mul_(colours.factor).add_(colours.bias)


def to_device(values: NDArray[Any], device: torch.device) -> Tensor:
    """A small array on a device, through pinned memory, so that the host does not wait."""
    found = torch.from_numpy(np.ascontiguousarray(values))
    return found.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else found.to(device)


def _taps(
    pixels: Tensor, place: _Place, axes: tuple[_Axis, _Axis], size: int, colours: Colours, form: torch.memory_format
) -> Tensor:
    """Each output row is a weighted sum of few source rows, then the same for columns, as many images at a time as stay in
    the processor's cache.
    """
    across, down = axes
    starts = (place.offset + (down.first * place.width + across.first) * 3 + pixels.storage_offset()).tolist()
    strides, talls, wides = (part.tolist() for part in (place.width * 3, down.count, across.count))
    n, wide, tall = len(starts), max(wides), max(talls)
    columns, rows = _weights(across, size), _weights(down, size)
    found = torch.empty((n, 3 * size, size), dtype=torch.float32, device=pixels.device)
    most = max(1, CACHED_ELEMENTS // (3 * wide * tall))
    for begin in range(0, n, most):
        part = slice(begin, min(n, begin + most))
        wide, tall = max(wides[part]), max(talls[part])
        windows = torch.empty((part.stop - begin, tall, wide * 3), dtype=torch.float32, device=pixels.device)
        for i in range(begin, part.stop):
            shape = (talls[i], wides[i] * 3)
            windows[i - begin, : shape[0], : shape[1]] = pixels.as_strided(shape, (strides[i], 1), starts[i])
        # (row, column, channel) turned to (column, channel, row), and at the end to (channel, row, column).
        lines = _weighted(windows, rows[0][part], rows[1][part])
        turned = lines.transpose(1, 2).reshape(-1, wide, 3 * size)
        found[part] = _weighted(turned, columns[0][part], columns[1][part]).transpose(1, 2)
    found = found.view(n, 3, size, size).contiguous(memory_format=form)
    found.mul_(colours.factor).add_(colours.bias)
    if not (_inside(across, size) and _inside(down, size)):
        shown = rows[2][:, None, :, None] & columns[2][:, None, None, :]
        found = torch.where(shown, found, colours.fill)
    return found


def _weighted(lines: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    """Sums of lines: (n, extent, m) with index and weight (n, size, k) give (n, size, m)."""
    n, extent, length = lines.shape
    bags = (index + torch.arange(n, device=lines.device)[:, None, None] * extent).flatten(0, 1)
    table, weights = lines.view(n * extent, length), weight.flatten(0, 1)
    return functional.embedding_bag(bags, table, mode="sum", per_sample_weights=weights).view(n, -1, length)


def _weights(axis: _Axis, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Source pixels (n, size, k) of every output pixel, their weights, and whether it lies inside (n, size)."""
    place = axis.start[:, None] + (np.arange(size) + 0.5) * axis.step[:, None]
    support = np.maximum(np.abs(axis.step), 1)[:, None]
    most = int(np.ceil(2 * support.max())) + 1
    index = np.floor(place - support + 0.5)[:, :, None] + np.arange(most)
    weight = np.maximum(0, 1 - np.abs(index + 0.5 - place[:, :, None]) / support[:, :, None])
    weight *= (index >= 0) & (index < axis.count[:, None, None])
    total = weight.sum(2, keepdims=True)
    weight /= np.where(total > 0, total, 1)
    inside = (place >= axis.low[:, None]) & (place < axis.high[:, None])
    index = index.clip(0, axis.count[:, None, None] - 1)
    return (
        torch.from_numpy(index.astype(np.int64)),
        torch.from_numpy(weight.astype(np.float32)),
        torch.from_numpy(inside),
    )


def _kernel(pixels: Tensor, place: _Place, axes: tuple[_Axis, _Axis], colours: Colours, out: Tensor) -> Tensor:
    """One pass, straight to the type and the layout that are wanted."""
    from nearkin.data.resample_kernel import boxes

    across, down = axes
    stride = place.width * 3
    lines = np.stack([place.offset + down.first * stride + across.first * 3, stride], 1)
    taps = (
        int(np.ceil(2 * max(1, np.abs(across.step).max()))) + 1,
        int(np.ceil(2 * max(1, np.abs(down.step).max()))) + 1,
    )
    facts = to_device(_facts(axes), pixels.device)
    return boxes(
        pixels, to_device(lines, pixels.device), facts, (colours.factor, colours.bias, colours.fill), taps, out
    )


def _facts(axes: tuple[_Axis, _Axis]) -> NDArray[np.float32]:
    """(n, 10): what a device has to know of both axes."""
    found = [part for axis in axes for part in (axis.start, axis.step, axis.count, axis.low, axis.high)]
    return np.stack(found, 1).astype(np.float32)


def _matrix(
    pixels: Tensor, place: _Place, axes: tuple[_Axis, _Axis], size: int, colours: Colours, form: torch.memory_format
) -> Tensor:
    """Both filters as matrix products on boxes padded to one shape, a part of the batch at a time if need be."""
    across, down = axes
    wide, tall = (-(-int(axis.count.max()) // STEP) * STEP for axis in axes)
    n, device = len(place.offset), pixels.device
    stride = place.width * 3
    where = np.stack([place.offset + down.first * stride + across.first * 3, stride, down.count], 1)
    # The last row of the last image, read at the padded width, may end behind the buffer.
    missing = int((where[:, 0] + (down.count - 1) * stride).max()) + wide * 3 - len(pixels)
    if missing > 0:
        pixels = functional.pad(pixels, (0, missing))
    starts, numbers = to_device(where, device), to_device(_facts(axes), device)
    inside = _inside(across, size) and _inside(down, size)
    found = torch.empty((n, 3, size, size), dtype=torch.float32, device=device, memory_format=form)
    most = max(1, MOST_ELEMENTS // (3 * wide * tall))
    for begin in range(0, n, most):
        part = slice(begin, begin + most)
        weights_x, shown_x = _dense(numbers[part, :5], wide, size)
        weights_y, shown_y = _dense(numbers[part, 5:], tall, size)
        line = torch.minimum(torch.arange(tall, device=device), starts[part, 2:] - 1)
        values = _rows(pixels, starts[part, :1] + line * starts[part, 1:2], wide * 3)
        values = weights_y @ values.to(torch.float16)
        values = values.view(-1, size, wide, 3).permute(0, 3, 1, 2).reshape(-1, 3 * size, wide)
        values = (values @ weights_x.transpose(1, 2)).view(-1, 3, size, size)
        out = found[part].copy_(values).mul_(colours.factor).add_(colours.bias)
        if not inside:
            shown = shown_y[:, None, :, None] & shown_x[:, None, None, :]
            out.copy_(torch.where(shown, out, colours.fill))
    return found


def _dense(facts: Tensor, extent: int, size: int) -> tuple[Tensor, Tensor]:
    """Weights (n, size, extent) in float16 of one axis, and which output pixels lie inside (n, size)."""
    start, step, count, low, high = facts[:, :, None].unbind(1)
    place = start + (torch.arange(size, device=facts.device) + 0.5) * step
    support = step.abs().clamp_min(1)
    source = torch.arange(extent, device=facts.device)
    weight = (1 - (source + 0.5 - place[:, :, None]).abs() / support[:, :, None]).clamp_min(0)
    weight = weight * (source < count)[:, None, :]
    weight = weight / weight.sum(2, keepdim=True).clamp_min(1e-6)
    return weight.to(torch.float16), (place >= low) & (place < high)

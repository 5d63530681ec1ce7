"""Resampling against plain loops, Pillow and torch; the ways agree; copies are exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

import nearkin.data.resample as module
from nearkin.data.geometry import Geometry, noise
from nearkin.data.resample import Colours, resample

GREY_LEVELS = Colours.of(std=(1 / 255, 1 / 255, 1 / 255))
WAYS = ("taps", "matrix")
# In float32 the sums are exact to rounding; float16 has weights of 11 bits and keeps the value between the two filters.
TOLERANCE = {"taps": 2e-3, "matrix": 0.4}


def ragged(sizes: list[tuple[int, int]], seed: int = 0) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Random images and the buffer that holds them one after the other."""
    generator = np.random.default_rng(seed)
    images = [generator.integers(0, 256, (height, width, 3), dtype=np.uint8) for height, width in sizes]
    lengths = [image.size for image in images]
    place = {
        "pixels": torch.from_numpy(np.concatenate([image.ravel() for image in images])),
        "offset": np.cumsum([0, *lengths[:-1]]),
        "height": np.array([height for height, _ in sizes], np.int32),
        "width": np.array([width for _, width in sizes], np.int32),
    }
    return images, place


def plain_axis(line: np.ndarray, start: float, length: float, size: int, around: bool) -> tuple[np.ndarray, list[bool]]:
    """The triangle filter along the first axis, one output pixel after the other, in float64."""
    extent, scale = len(line), length / size
    reach = max(1.0, scale)
    low, high = (0, extent) if around else (max(0, math.floor(start)), min(extent, math.ceil(start + length)))
    out, inside = [], []
    for i in range(size):
        center = start + (i + 0.5) * scale
        total, value = 0.0, np.zeros(line.shape[1:])
        for j in range(low, high):
            weight = 1 - abs(j + 0.5 - center) / reach
            if weight > 0:
                total += weight
                value = value + weight * line[j]
        inside.append(0 <= center < extent)
        out.append(value / total if inside[-1] else value * 0)
    return np.stack(out), inside


def plain(image: np.ndarray, box: Any, size: int, flip: bool, around: bool, fill: float) -> np.ndarray:
    """(3, size, size) grey levels."""
    left, top, width, height = box
    rows, inside_y = plain_axis(image.astype(np.float64), top, height, size, around)
    columns, inside_x = plain_axis(rows.swapaxes(0, 1), left, width, size, around)
    found = columns.swapaxes(0, 1)
    found[~np.outer(inside_y, inside_x)] = fill
    if flip:
        found = found[:, ::-1]
    return found.transpose(2, 0, 1)


SIZES = [(20, 31), (40, 12), (9, 9), (64, 50), (7, 80), (33, 33)]


def boxes_of(kind: str) -> np.ndarray:
    generator = np.random.default_rng(1)
    height, width = np.array(SIZES, float).T
    shares = generator.random((6, 4))
    if kind == "inside":  # shrinking and enlarging, at broken places
        wide, tall = width * (0.2 + 0.7 * shares[:, 2]), height * (0.2 + 0.7 * shares[:, 3])
        return np.stack([shares[:, 0] * (width - wide), shares[:, 1] * (height - tall), wide, tall], 1)
    if kind == "whole":
        return np.stack([0 * width, 0 * height, width, height], 1)
    if kind == "pixels":  # whole pixels, as a cut that comes first has them
        wide, tall = np.ceil(width * 0.6), np.ceil(height * 0.5)
        return np.stack([np.floor(width * 0.3), np.floor(height * 0.4), wide, tall], 1)
    return np.stack([-0.3 * width, -0.2 * height, 1.5 * width, 1.7 * height], 1)  # beyond every edge


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("kind", ["inside", "whole", "pixels", "beyond"])
def test_every_way_is_the_plain_loop(kind: str, around: bool, way: Any) -> None:
    images, place = ragged(SIZES)
    boxes, flip = boxes_of(kind), np.array([0, 1, 0, 1, 1, 0], bool)
    colours = Colours.of(std=(1 / 255,) * 3, fill=(0.2, 0.2, 0.2))
    found = resample(**place, boxes=boxes, flip=flip, size=16, colours=colours, around=around, way=way)
    for i, image in enumerate(images):
        expected = plain(image, boxes[i], 16, bool(flip[i]), around, 51.0)
        assert np.abs(found[i].numpy() - expected).max() < TOLERANCE[way]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [5, 24, 70])
def test_pillow_agrees(size: int, way: Any) -> None:
    images, place = ragged(SIZES)
    boxes = boxes_of("inside")
    found = resample(**place, boxes=boxes, size=size, colours=GREY_LEVELS, way=way)
    for i, (image, (left, top, width, height)) in enumerate(zip(images, boxes.tolist(), strict=True)):
        box = (left, top, left + width, top + height)
        expected = np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR, box=box))
        # Pillow rounds to whole levels after each of its two passes.
        assert np.abs(found[i].permute(1, 2, 0).numpy() - expected).max() <= 1.01 + TOLERANCE[way]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [5, 24, 70])
def test_cutting_first_is_what_torch_makes_of_the_cut(size: int, way: Any) -> None:
    images, place = ragged(SIZES)
    boxes = boxes_of("pixels")
    found = resample(**place, boxes=boxes, size=size, colours=GREY_LEVELS, around=False, way=way)
    for i, (image, (left, top, width, height)) in enumerate(zip(images, boxes.astype(int).tolist(), strict=True)):
        cut = torch.from_numpy(image[top : top + height, left : left + width]).permute(2, 0, 1)[None].float()
        expected = functional.interpolate(cut, (size, size), mode="bilinear", antialias=True)[0]
        assert (found[i] - expected).abs().max() < TOLERANCE[way]


@pytest.mark.parametrize("name", ["crop", "squash", "resized_crop", "longer_side"])
def test_each_geometry_is_its_pipeline_of_images(name: str) -> None:
    """Resize the whole image with torch, pad, cut whole pixels, mirror; or cut, resize, mirror."""
    sizes = [(30, 47), (64, 48), (48, 48), (20, 90)]
    images, place = ragged(sizes)
    geometry = Geometry(name, size=28, resize=32)
    numbers = noise(0, 0, np.arange(4), geometry.draws)
    boxes, flip = geometry.boxes(place["height"], place["width"], numbers), geometry.flips(numbers)
    fill = (10 / 255, 10 / 255, 10 / 255)
    colours = Colours.of(std=(1 / 255,) * 3, fill=fill)
    found = resample(**place, boxes=boxes, flip=flip, size=28, colours=colours, around=geometry.around)
    for i, image in enumerate(images):
        height, width = image.shape[:2]
        picture = torch.from_numpy(image).permute(2, 0, 1)[None].float()
        if name == "resized_crop":
            left, top, wide, tall = boxes[i].astype(int)
            picture = picture[..., top : top + tall, left : left + wide]
            expected = functional.interpolate(picture, (28, 28), mode="bilinear", antialias=True)
        else:
            side = {"crop": min(height, width), "longer_side": max(height, width)}.get(name, 0)
            shape = (32, 32) if name == "squash" else (32 * height // side, 32 * width // side)
            picture = functional.interpolate(picture, shape, mode="bilinear", antialias=True)
            if name == "longer_side":
                above, before = (32 - shape[0]) // 2, (32 - shape[1]) // 2
                padding = (before, 32 - shape[1] - before, above, 32 - shape[0] - above)
                picture = functional.pad(picture, padding, value=10.0)
            free_y, free_x = picture.shape[2] - 28, picture.shape[3] - 28
            top, left = int(numbers[i, 2] * (free_y + 1)), int(numbers[i, 1] * (free_x + 1))
            expected = picture[..., top : top + 28, left : left + 28]
        expected = expected.flip(3) if flip[i] else expected
        assert (found[i] - expected[0]).abs().max() < 0.01


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("around", [True, False])
def test_boxes_beside_their_image_are_filled(way: Any, around: bool) -> None:
    _, place = ragged([(10, 10), (4, 6)])
    boxes = np.array([[0.0, 3e6, 5.0, 5.0], [900.0, -2e6, 3.0, 3.0]])
    colours = Colours.of(std=(1 / 255,) * 3, fill=(0.2, 0.2, 0.2))
    found = resample(**place, boxes=boxes, size=4, colours=colours, around=around, way=way)
    assert np.allclose(found, 51)


@pytest.mark.parametrize("way", [None, "cut", "taps", "matrix"])
def test_a_box_of_whole_pixels_is_copied_exactly(way: Any) -> None:
    images, place = ragged([(20, 31), (16, 16), (40, 17)])
    boxes = np.array([[15, 4, 16, 16], [0, 0, 16, 16], [1, 24, 16, 16]], float)
    flip = np.array([False, True, False])
    for around in (True, False):
        found = resample(**place, boxes=boxes, flip=flip, size=16, colours=GREY_LEVELS, around=around, way=way)
        for i, (image, box) in enumerate(zip(images, boxes.astype(int).tolist(), strict=True)):
            cut = image[box[1] : box[1] + 16, box[0] : box[0] + 16]
            expected = cut[:, ::-1] if flip[i] else cut
            assert np.array_equal(found[i].permute(1, 2, 0).numpy(), expected)


def test_what_can_be_copied_is(monkeypatch: pytest.MonkeyPatch) -> None:
    _, place = ragged([(20, 20), (30, 30)])
    monkeypatch.setattr(module, "_taps", None)
    fine = np.array([[4, 0, 16, 16], [0, 14, 16, 16]], float)
    resample(**place, boxes=fine, size=16, colours=GREY_LEVELS)
    for change in ([0.5, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0]):
        boxes = fine.copy()
        boxes[0] += change
        with pytest.raises(TypeError):
            resample(**place, boxes=boxes, size=16, colours=GREY_LEVELS)


@pytest.mark.parametrize("way", ["cut", "taps", "matrix"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_colours_types_and_memory(way: Any, channels_last: bool, dtype: torch.dtype) -> None:
    images, place = ragged([(8, 8), (8, 8)])
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    found = resample(
        **place, boxes=np.array([[0, 0, 8, 8.0]] * 2), size=8, colours=Colours.of(mean, std), way=way,
        dtype=dtype, channels_last=channels_last,
    )  # fmt: skip
    assert found.shape == (2, 3, 8, 8) and found.dtype == dtype
    form = torch.channels_last if channels_last else torch.contiguous_format
    assert found.is_contiguous(memory_format=form)
    expected = (np.stack(images) / 255 - mean) / std
    assert np.abs(found.double().permute(0, 2, 3, 1).numpy() - expected).max() < (
        0.02 if dtype == torch.bfloat16 else 1e-6
    )


@pytest.mark.parametrize("way", WAYS)
def test_the_default_padding_is_the_mean_which_becomes_zero(way: Any) -> None:
    _, place = ragged([(8, 8)])
    colours = Colours.of((0.3, 0.4, 0.5), (0.2, 0.2, 0.2))
    found = resample(**place, boxes=np.array([[-4, 0, 8, 8.0]]), size=8, colours=colours, way=way)
    assert (found[..., :4] == 0).all() and (found[..., 4:] != 0).any()


@pytest.mark.parametrize("way", WAYS)
def test_parts_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch, way: Any) -> None:
    _, place = ragged(SIZES)
    options: dict[str, Any] = {"boxes": boxes_of("beyond"), "size": 16, "colours": GREY_LEVELS, "way": way}
    whole = resample(**place, **options)
    monkeypatch.setattr(module, "MOST_ELEMENTS", 40_000)
    monkeypatch.setattr(module, "CACHED_ELEMENTS", 1)
    assert torch.equal(resample(**place, **options), whole)


@pytest.mark.parametrize("way", ["cut", "taps", "matrix"])
def test_a_buffer_may_begin_anywhere_and_end_with_the_last_image(way: Any) -> None:
    images, place = ragged([(9, 9), (8, 8)])
    behind = torch.cat([torch.full((100,), 77, dtype=torch.uint8), place["pixels"]])[100:]
    boxes = np.array([[1, 1, 8, 8], [0, 0, 8, 8.0]])
    found = resample(**{**place, "pixels": behind}, boxes=boxes, size=8, colours=GREY_LEVELS, way=way)
    assert np.array_equal(found[1].permute(1, 2, 0).numpy(), images[1])
    assert np.array_equal(found[0].permute(1, 2, 0).numpy(), images[0][1:, 1:])


def test_an_image_is_the_same_whatever_stands_beside_it() -> None:
    _, place = ragged(SIZES)
    boxes = boxes_of("inside")
    together = resample(**place, boxes=boxes, size=20, colours=GREY_LEVELS)
    for i in range(6):
        own = {key: value if key == "pixels" else value[i : i + 1] for key, value in place.items()}
        assert torch.equal(resample(**own, boxes=boxes[i : i + 1], size=20, colours=GREY_LEVELS)[0], together[i])


@pytest.mark.parametrize("way", ["taps", "matrix"])
def test_extreme_boxes_stay_finite(way: Any) -> None:
    _, place = ragged([(1, 1), (2, 300), (300, 2), (50, 50)])
    boxes = np.array([[0, 0, 1, 1], [0, 0, 300, 2], [0, 0, 2, 300], [20, 20, 1e-3, 1e-3]], float)
    found = resample(**place, boxes=boxes, size=13, colours=GREY_LEVELS, way=way)
    assert torch.isfinite(found).all() and found.min() >= 0 and found.max() <= 255.2
    assert (found[0] == found[0, :, :1, :1]).all() and (found[3] - found[3, :, :1, :1]).abs().max() < 0.6
    outside = resample(**place, boxes=boxes - [900, 0, 0, 0], size=13, colours=GREY_LEVELS, way=way)
    assert (outside == 0).all()


@pytest.mark.parametrize("way", WAYS)
def test_autocast_does_not_touch_the_pixels(way: Any) -> None:
    _, place = ragged(SIZES)
    options: dict[str, Any] = {"boxes": boxes_of("inside"), "size": 16, "colours": GREY_LEVELS, "way": way}
    with torch.autocast("cpu", torch.bfloat16):
        found = resample(**place, **options)
    assert torch.equal(found, resample(**place, **options))


def test_no_images() -> None:
    _, place = ragged([(4, 4)])
    none = {key: value if key == "pixels" else value[:0] for key, value in place.items()}
    assert resample(**none, boxes=np.zeros((0, 4)), size=8, colours=GREY_LEVELS).shape == (0, 3, 8, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boxes": np.ones((2, 4))}, "must have one entry per image, got shapes"),
        ({"boxes": np.ones((1, 3))}, "must have one entry per image"),
        ({"flip": np.zeros(3, bool)}, "must have one entry per image"),
        ({"boxes": np.array([[0, 0, 0, 4.0]])}, "boxes must be finite with a width and a height above 0"),
        ({"boxes": np.array([[np.nan, 0, 4, 4.0]])}, "boxes must be finite"),
        ({"offset": np.array([1])}, "images must lie inside pixels (48 bytes), got offsets beyond"),
        ({"offset": np.array([-1])}, "images must lie inside pixels"),
        ({"pixels": torch.zeros(48)}, "pixels must be a flat uint8 tensor, got torch.float32 of shape (48,)"),
        ({"pixels": torch.zeros(4, 4, 3, dtype=torch.uint8)}, "pixels must be a flat uint8 tensor"),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    _, place = ragged([(4, 4)])
    with pytest.raises((ValueError, TypeError)) as caught:
        resample(**{"boxes": np.array([[0, 0, 4, 4.0]]), **place, **change}, size=4, colours=GREY_LEVELS)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": (0.5,)}, "mean must be three finite numbers, red green blue, got (0.5,); pass three."),
        ({"std": (1, 1, math.nan)}, "std must be three finite numbers, red green blue, got (1, 1, nan); pass three."),
        ({"std": (1, 0, 1)}, "std must be above 0 in every channel, got (1, 0, 1); pass the spread of the data."),
        ({"fill": (1, 1)}, "fill must be three finite numbers, red green blue, got (1, 1); pass three."),
    ],
)
def test_bad_colours(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Colours.of(**options)
    assert str(caught.value) == message


def test_ways_that_do_not_suit() -> None:
    _, place = ragged([(4, 4)])
    for way, message in (
        ("cat", "way 'cat' is not known; did you mean 'cut'?"),
        ("cut", "way 'cut' does not suit these boxes"),
    ):
        with pytest.raises(ValueError) as caught:
            resample(**place, boxes=np.array([[0, 0, 3.5, 4.0]]), size=4, colours=GREY_LEVELS, way=way)  # type: ignore[arg-type]
        assert str(caught.value).startswith(message)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["inside", "whole", "pixels", "beyond"])
@pytest.mark.parametrize("around", [True, False])
def test_the_gpu_agrees_and_the_host_does_not_wait(kind: str, around: bool) -> None:
    _, place = ragged(SIZES)
    options: dict[str, Any] = {
        "boxes": boxes_of(kind),
        "flip": np.array([0, 1, 0, 1, 1, 0], bool),
        "size": 16,
        "around": around,
    }
    expected = resample(**place, **options, colours=GREY_LEVELS)
    there = Colours.of(std=(1 / 255,) * 3, device="cuda")
    pixels = functional.pad(place["pixels"], (0, 1000)).cuda()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = resample(**{**place, "pixels": pixels}, **options, colours=there)
        last = resample(**{**place, "pixels": pixels}, **options, colours=there, channels_last=True)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert (found.cpu() - expected).abs().max() < 0.4
    assert torch.equal(found, last) and last.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.gpu
def test_the_gpu_copies_exactly() -> None:
    images, place = ragged([(20, 31), (16, 16), (40, 17)])
    boxes = np.array([[15, 4, 16, 16], [0, 0, 16, 16], [1, 24, 16, 16]], float)
    there = Colours.of(std=(1 / 255,) * 3, device="cuda")
    for way in (None, "matrix", "kernel"):
        found = resample(
            **{**place, "pixels": place["pixels"].cuda()},
            boxes=boxes,
            flip=np.ones(3, bool),
            size=16,
            colours=there,
            way=way,
        )  # type: ignore[arg-type]
        for i, (image, box) in enumerate(zip(images, boxes.astype(int).tolist(), strict=True)):
            expected = image[box[1] : box[1] + 16, box[0] : box[0] + 16][:, ::-1]
            assert np.array_equal(found[i].permute(1, 2, 0).cpu().numpy(), expected)

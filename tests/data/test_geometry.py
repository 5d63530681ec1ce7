"""Boxes: where they lie, how they are drawn, and that nothing but the key decides about them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nearkin.data.geometry import NAMES, TRIES, Geometry, noise

HEIGHTS = np.array([256, 341, 256, 500, 121, 30, 1, 3000])
WIDTHS = np.array([341, 256, 256, 121, 500, 40, 700, 5])


def drawn(geometry: Geometry, n: int, seed: int = 0) -> np.ndarray:
    return noise(seed, 0, np.arange(n), geometry.draws)


@pytest.mark.parametrize("size", [224, 227])
def test_crop_of_an_image_of_the_right_size_is_whole_pixels(size: int) -> None:
    geometry = Geometry("crop", size=size, resize=256)
    heights, widths = np.repeat([256, 341, 256, 700], 50), np.repeat([341, 256, 256, 256], 50)
    for boxes in (geometry.boxes(heights, widths, drawn(geometry, 200)), geometry.center(heights, widths)):
        assert (boxes[:, 2:] == size).all() and (boxes % 1 == 0).all()
        assert (boxes[:, :2] >= 0).all()
        assert (boxes[:, 0] + size <= widths).all() and (boxes[:, 1] + size <= heights).all()


@pytest.mark.parametrize("name", ["crop", "squash", "resized_crop"])
def test_boxes_lie_inside_the_image(name: str) -> None:
    geometry = Geometry(name, size=224, resize=256)
    heights, widths = np.repeat(HEIGHTS, 100), np.repeat(WIDTHS, 100)
    for boxes in (geometry.boxes(heights, widths, drawn(geometry, 800)), geometry.center(heights, widths)):
        left, top, width, height = boxes.T
        tiny = 1e-9
        assert (left >= 0).all() and (top >= 0).all() and (width > 0).all() and (height > 0).all()
        assert (left + width <= widths * (1 + tiny)).all() and (top + height <= heights * (1 + tiny)).all()


def test_a_crop_shows_its_share_of_the_shorter_side_with_the_aspect_kept() -> None:
    geometry = Geometry("crop", size=224, resize=256)
    boxes = geometry.boxes(HEIGHTS[:6], WIDTHS[:6], drawn(geometry, 6))
    shorter = np.minimum(HEIGHTS, WIDTHS)[:6]
    # The longer side is rounded down to whole pixels when it is resized, so the aspect is kept to a pixel of it.
    assert np.allclose(boxes[:, 2:].min(1), shorter * 224 / 256)
    assert np.allclose(boxes[:, 2], boxes[:, 3], rtol=1 / 256)


def test_the_same_numbers_show_the_same_part_at_any_resolution() -> None:
    for name in ("crop", "squash", "longer_side"):
        geometry = Geometry(name, size=24, resize=32)
        numbers = np.repeat(drawn(geometry, 1), 3, 0)
        boxes = geometry.boxes(np.array([32, 64, 16]), np.array([48, 96, 24]), numbers)
        assert np.allclose(boxes[0], boxes[1] / 2) and np.allclose(boxes[0], boxes[2] * 2)


@pytest.mark.parametrize(("height", "width"), [(256, 341), (341, 256), (375, 500), (500, 333), (100, 100)])
def test_centre_crops_follow_the_common_rule(height: int, width: int) -> None:
    """Shorter side to 256, the longer one rounded down; the offset is half of what is left, halves to the even number."""
    shorter = min(height, width)
    tall, wide = int(256 * height / shorter), int(256 * width / shorter)
    top, left = round((tall - 224) / 2.0), round((wide - 224) / 2.0)
    expected = [left * width / wide, top * height / tall, 224 * width / wide, 224 * height / tall]
    for name in ("crop", "resized_crop"):
        found = Geometry(name, size=224, resize=256).center(np.array([height]), np.array([width]))
        assert found[0] == pytest.approx(expected)


def test_squash_shows_the_same_share_of_both_sides() -> None:
    geometry = Geometry("squash", size=224, resize=256)
    boxes = geometry.boxes(HEIGHTS, WIDTHS, drawn(geometry, 8))
    assert np.allclose(boxes[:, 2] / WIDTHS, 224 / 256) and np.allclose(boxes[:, 3] / HEIGHTS, 224 / 256)
    offsets = boxes[:, 0] / WIDTHS * 256
    assert np.allclose(offsets, np.rint(offsets))
    assert np.allclose(geometry.center(HEIGHTS, WIDTHS)[:, 0], WIDTHS * 16 / 256)


def test_longer_side_pads_the_shorter_one() -> None:
    geometry = Geometry("longer_side", size=256, resize=256)
    # 128 x 256 becomes 128 x 256 between two bands of 64; 500 x 1000 the same at another scale.
    found = geometry.center(np.array([128, 500, 256]), np.array([256, 1000, 128]))
    assert found[0].tolist() == [0, -64, 256, 256]
    assert np.allclose(found[1], [0, -250, 1000, 1000])
    assert found[2].tolist() == [-64, 0, 256, 256]
    cut = Geometry("longer_side", size=224, resize=256)
    boxes = cut.boxes(np.full(500, 128), np.full(500, 256), drawn(cut, 500))
    assert set(boxes[:, 0].tolist()) <= set(range(33)) and set(boxes[:, 1].tolist()) <= set(range(-64, -31))
    assert boxes[:, 1].min() == -64 and boxes[:, 1].max() == -32
    thin = geometry.center(np.array([1]), np.array([5000]))  # a line: at least one row of it is left
    assert np.isfinite(thin).all() and thin[0, 3] == 256


def test_every_position_of_a_crop_is_as_likely_as_every_other() -> None:
    geometry = Geometry("crop", size=30, resize=32)
    n = 9000
    boxes = geometry.boxes(np.full(n, 32), np.full(n, 34), drawn(geometry, n))
    places, counts = np.unique(boxes[:, :2], axis=0, return_counts=True)
    assert len(places) == 3 * 5
    assert np.abs(counts - n / 15).max() < 5 * math.sqrt(n / 15)


def plain_resized_crop(height: int, width: int, numbers: list[float], scale: Any, aspect: Any) -> list[float]:
    """The rule in a plain loop: draw area and aspect until the box fits, at most ten times."""
    tries = numbers[3:]
    for k in range(10):
        area = height * width * (scale[0] + tries[k] * (scale[1] - scale[0]))
        ratio = math.exp(math.log(aspect[0]) + tries[10 + k] * (math.log(aspect[1]) - math.log(aspect[0])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return [math.floor(numbers[1] * (width - w + 1)), math.floor(numbers[2] * (height - h + 1)), w, h]
    if width / height < aspect[0]:
        w, h = width, round(width / aspect[0])
    elif width / height > aspect[1]:
        w, h = round(height * aspect[1]), height
    else:
        w, h = width, height
    return [(width - w) // 2, (height - h) // 2, w, h]


@pytest.mark.parametrize(
    ("scale", "aspect"), [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.9, 1.0), (0.5, 2.0)), ((1, 1), (1, 1))]
)
def test_resized_crop_is_the_plain_loop(scale: tuple[float, float], aspect: tuple[float, float]) -> None:
    geometry = Geometry("resized_crop", scale=scale, aspect=aspect)
    heights, widths = np.repeat(HEIGHTS, 40), np.repeat(WIDTHS, 40)
    numbers = drawn(geometry, len(heights), seed=3)
    assert numbers.shape == (320, 3 + 2 * TRIES)
    boxes = geometry.boxes(heights, widths, numbers)
    for height, width, own, box in zip(
        heights.tolist(), widths.tolist(), numbers.tolist(), boxes.tolist(), strict=True
    ):
        assert box == plain_resized_crop(height, width, own, scale, aspect)


def test_resized_crop_draws_what_it_says() -> None:
    geometry = Geometry("resized_crop", scale=(0.2, 0.6))
    n = 20_000
    boxes = geometry.boxes(np.full(n, 1000), np.full(n, 1000), drawn(geometry, n))
    share, aspect = boxes[:, 2] * boxes[:, 3] / 1e6, np.log(boxes[:, 2] / boxes[:, 3])
    assert 0.198 < share.min() < 0.202 and 0.598 < share.max() < 0.602
    assert abs(share.mean() - 0.4) < 0.003  # even in area: at this scale every first try fits
    assert abs(aspect.mean()) < 0.005 and abs(abs(aspect).max() - math.log(4 / 3)) < 0.005


def test_resized_crop_may_be_larger_than_the_test_s_resize() -> None:
    geometry = Geometry("resized_crop", size=448, resize=256)
    assert geometry.center(np.array([256]), np.array([300])).tolist() == [
        [pytest.approx(22, abs=0.6), 0, pytest.approx(256, rel=0.002), 256]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_mirrors(name: str) -> None:
    half = Geometry(name)
    numbers = drawn(half, 10_000)
    assert abs(half.flips(numbers).mean() - 0.5) < 0.02
    assert Geometry(name, mirror=1.0).flips(numbers).all() and not Geometry(name, mirror=0.0).flips(numbers).any()
    # Mirroring says nothing about the place.
    left = half.boxes(np.full(10_000, 300), np.full(10_000, 400), numbers)[:, 0]
    assert abs(np.corrcoef(left, half.flips(numbers))[0, 1]) < 0.04


def test_only_resized_crop_cuts_first() -> None:
    assert [Geometry(name).around for name in NAMES] == [True, True, True, False]


def test_noise_is_a_function_of_seed_step_and_row() -> None:
    rows = np.array([5, 0, 5, 9_000_000_000])
    found = noise(3, 8, rows, 4)
    assert found.shape == (4, 4) and found.dtype == np.float64
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(noise(3, 8, rows[1:2], 4)[0], found[1])  # whatever stands beside it
    assert np.array_equal(noise(3, 8, rows, 2), found[:, :2])  # however many are drawn
    for other in (noise(4, 8, rows, 4), noise(3, 9, rows, 4), noise(3, 8, rows + 1, 4)):
        assert not (found == other).any()


def test_noise_is_even_and_its_columns_rows_steps_and_seeds_are_unrelated() -> None:
    rows = np.arange(4000)
    table = np.concatenate([noise(seed, step, rows, 5) for seed, step in ((0, 0), (0, 1), (1, 0), (1, 1))], 1)
    assert table.min() >= 0 and table.max() < 1
    for column in table.T:
        counts = np.histogram(column, 20, (0, 1))[0]
        assert ((counts - 200) ** 2 / 200).sum() < 56  # chi-square, 19 degrees of freedom: 1 in 100,000
    related = np.corrcoef(table, rowvar=False) - np.eye(20)
    assert np.abs(related).max() < 0.07
    shifted = np.corrcoef(table[1:, 0], table[:-1, 0])[0, 1]
    assert abs(shifted) < 0.07


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "croop"}, "geometry 'croop' is not known; did you mean 'crop'?"),
        ({"size": 0}, "crop: size must be a whole number at least 1, got 0; change size."),
        ({"resize": 25.6}, "crop: resize must be a whole number at least 1, got 25.6; change resize."),
        (
            {"name": "squash", "size": 300},
            "squash: size must be at most resize (256), since a crop lies inside the resized image, got 300; raise resize.",
        ),
        ({"mirror": 1.5}, "crop: mirror must be a finite number at least 0 and at most 1, got 1.5; change mirror."),
        (
            {"scale": (0.5, 1.2)},
            "crop: scale must be two numbers with 0 < low <= high <= 1, got 0.5 and 1.2; change scale.",
        ),
        (
            {"scale": (0.0, 1.0)},
            "crop: scale must be two numbers with 0 < low <= high <= 1, got 0.0 and 1.0; change scale.",
        ),
        ({"aspect": (2, 1)}, "crop: aspect must be two numbers with 0 < low <= high, got 2 and 1; change aspect."),
        (
            {"aspect": (1, math.inf)},
            "crop: aspect must be two numbers with 0 < low <= high, got 1 and inf; change aspect.",
        ),
        ({"scale": (0.5,)}, "crop: scale must be two numbers with 0 < low <= high <= 1, got (0.5,); change scale."),
        ({"scale": "ab"}, "crop: scale must be two numbers with 0 < low <= high <= 1, got 'ab'; change scale."),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Geometry(**settings)
    assert str(caught.value) == message

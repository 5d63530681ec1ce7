"""Fingerprints and copies, against plain comparisons of all pairs and against Pillow's distortions."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from nearkin.data.doctor import copies, fingerprints
from nearkin.data.doctor.copies import bar, components, near_copies
from nearkin.data.doctor.fingerprints import RADIUS, bits_set, close_pairs, perceptual_hash
from nearkin.data.doctor.picture import Prints, Wanted, look
from tests.data.test_doctor import scene


def prints(image: Image.Image) -> Prints:
    found = look(np.asarray(image.convert("RGB")), Wanted())[1]
    assert found is not None
    return found


def near(images: list[Image.Image]) -> list[copies.Pair]:
    made = [prints(image) for image in images]
    hashes, mirrors = (np.array([getattr(each, name) for each in made], np.uint64) for name in ("hash", "mirror"))
    return near_copies(
        hashes, mirrors, *(np.stack([getattr(each, name) for each in made]) for name in ("grey", "colour"))
    )


def all_close_pairs(hashes: list[int], asking: list[int]) -> list[tuple[int, int]]:
    """Every pair compared with every other, bit by bit."""
    return [
        (first, second)
        for first in range(len(hashes))
        for second in range(first + 1, len(hashes))
        if bin(asking[first] ^ hashes[second]).count("1") <= RADIUS
    ]


# ------------------------------------------------------------------------------------------ the search


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_close_pair_is_missed(seed: int, mirrored: bool) -> None:
    """Families of hashes at every distance around the radius."""
    random = np.random.default_rng(seed)
    hashes: list[int] = []
    asking: list[int] = []
    for _ in range(40):
        origin, mirror = (int.from_bytes(random.bytes(8), "little") for _ in range(2))
        for _ in range(6):
            turned = sum(1 << int(bit) for bit in random.choice(64, int(random.integers(0, 9)), replace=False))
            pair = (origin ^ turned, mirror ^ turned)
            hashes.append(pair[0] if random.random() < 0.5 else pair[1])
            asking.append(pair[0] if hashes[-1] == pair[1] else pair[1])
    first, second = close_pairs(np.array(hashes, np.uint64), np.array(asking, np.uint64) if mirrored else None)
    expected = all_close_pairs(hashes, asking if mirrored else hashes)
    assert len(expected) > 100
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_any_hashes_can_be_searched(hashes: list[int]) -> None:
    first, second = close_pairs(np.array(hashes, np.uint64))
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == all_close_pairs(hashes, hashes)


def test_a_crowd_is_compared_with_its_next_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "CROWD", 3)
    first, second = close_pairs(np.zeros(10, np.uint64))
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {
        (row, row + step) for row in range(10) for step in (1, 2, 3) if row + step < 10
    }


def test_the_search_does_not_compare_all_pairs() -> None:
    """Sixty thousand hashes have 1.8 billion pairs; what is compared is counted."""
    random = np.random.default_rng(0)
    hashes = random.integers(0, 2**64, 60_000, dtype=np.uint64)
    hashes[-1] = hashes[0] ^ np.uint64(0b1011)
    compared = 0
    count = fingerprints.bits_set

    def counting(values: np.ndarray) -> np.ndarray:
        nonlocal compared
        compared += len(values)
        return count(values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprints, "bits_set", counting)
        first, second = close_pairs(hashes)
    assert (0, 59_999) in zip(first.tolist(), second.tolist(), strict=True)
    assert compared < 5_000_000


def test_bits_are_counted_with_old_numpy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).integers(0, 2**64, 500, dtype=np.uint64)
    expected = [bin(int(value)).count("1") for value in values]
    assert bits_set(values).tolist() == expected
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert bits_set(values).tolist() == expected


# ------------------------------------------------------------------------------------------ the hash


def test_the_hash_is_the_signs_of_a_cosine_transform() -> None:
    """Against the formula in plain loops."""
    grey = np.asarray(scene(3).convert("L").resize((32, 32)))
    levels = grey.astype(np.float64)
    place = np.arange(32) + 0.5
    strengths = [
        float((levels * np.cos(np.pi / 32 * down * place)[:, None] * np.cos(np.pi / 32 * across * place)).sum())
        for down, across in fingerprints.FREQUENCIES
    ]
    absent = 0.02 * math.sqrt(sum(strength**2 for strength in strengths) / 64)
    bits = sum(1 << int(fingerprints._SHIFTS[number]) for number in range(64) if strengths[number] > absent)
    assert perceptual_hash(grey) == bits
    assert len(set(fingerprints.FREQUENCIES)) == len(set(fingerprints._SHIFTS.tolist())) == 64


def test_symmetric_things_keep_their_hash() -> None:
    """What is symmetric has no odd frequencies; storing it anew must not give them signs."""
    pixels = np.asarray(scene(3, 128, 96)).astype(int)
    symmetric = Image.fromarray(((pixels + pixels[:, ::-1]) // 2).astype(np.uint8))
    assert prints(symmetric).hash == prints(symmetric).mirror
    assert bin(prints(symmetric).hash ^ prints(stored(symmetric, 60)).hash).count("1") <= 2


# ------------------------------------------------------------------------------------------ near copies


def stored(image: Image.Image, quality: int) -> Image.Image:
    content = io.BytesIO()
    image.save(content, "JPEG", quality=quality)
    return Image.open(io.BytesIO(content.getvalue()))


CHANGES = {
    "jpeg 30": lambda image: stored(image, 30),
    "half the size": lambda image: image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS),
    "twice the size": lambda image: image.resize((image.width * 2, image.height * 2)),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.15),
    "less contrast": lambda image: ImageEnhance.Contrast(image).enhance(0.7),
    "edge cut off": lambda image: image.crop((1, 1, image.width, image.height)),
    "squashed": lambda image: image.resize((100, 100)),
    "mirrored": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_picture_is_found_again(change: str) -> None:
    originals = [scene(seed) for seed in range(40)]
    pairs = near([*originals, *(CHANGES[change](image) for image in originals)])
    assert {(pair.first, pair.second) for pair in pairs} == {(row, row + 40) for row in range(40)}
    assert all(pair.mirrored == (change == "mirrored") for pair in pairs)
    assert all(pair.alike is not None and 0.95 < pair.alike <= 1 for pair in pairs)


def test_different_pictures_are_no_copies() -> None:
    assert near([scene(seed) for seed in range(500)]) == []


def test_another_colour_is_another_picture() -> None:
    """The same shirt in red and in green, equally bright."""
    shirt = np.full((90, 120, 3), 240, np.uint8)
    red, green = shirt.copy(), shirt.copy()
    for left in range(20, 100, 20):
        red[20:70, left : left + 10], green[20:70, left : left + 10] = (200, 40, 60), (40, 126, 40)
    grey = [np.asarray(Image.fromarray(image).convert("L")).astype(int) for image in (red, green)]
    assert np.abs(grey[0] - grey[1]).max() <= 6
    assert near([Image.fromarray(red), Image.fromarray(green)]) == []
    assert len(near([Image.fromarray(red), stored(Image.fromarray(red), 80)])) == 1


def test_skies_are_no_copies() -> None:
    """Gradients with a little noise: hashes may agree, there is nothing to compare."""
    random = np.random.default_rng(0)
    skies = [
        Image.fromarray(
            np.clip(np.linspace(90, top, 64)[:, None, None] + random.normal(0, 2, (64, 64, 3)), 0, 255).astype(np.uint8)
        )
        for top in np.linspace(150, 250, 40)
    ]
    assert near(skies) == []


def test_the_bar_stays_where_unrelated_pairs_are_rare() -> None:
    assert bar(np.zeros(0, np.float32)) == copies.ALIKE
    assert bar(np.array([0.999] * 50 + [0.92] * 3 + [0.3] * 1000, np.float32)) == copies.ALIKE


@pytest.mark.parametrize("power", [3, 5, 8])
def test_the_bar_rises_with_pairs_that_are_alike_by_chance(power: int) -> None:
    """Distances drawn from a power law: about half a pair is expected beyond the bar, whatever the number."""
    random = np.random.default_rng(power)
    beyond = []
    for _ in range(200):
        distance = 0.2 * random.random(20_000) ** (1 / power)
        alike = (1 - distance).astype(np.float32)
        beyond.append(int((alike > bar(alike)).sum()))
    assert 0.2 < np.mean(beyond) < 1.5


def test_components_against_plain_search() -> None:
    random = np.random.default_rng(0)
    links = [(int(first), int(second)) for first, second in random.integers(0, 60, (40, 2))]
    reached = np.eye(60, dtype=bool)
    for first, second in links:
        reached[first, second] = reached[second, first] = True
    for _ in range(6):
        reached = reached @ reached
    assert components(60, links).tolist() == [int(np.flatnonzero(row)[0]) for row in reached]

"""The ten colours stay apart for every kind of colour vision, on both grounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from nearkin.plane.colours import DARK, GROUND, LIGHT, style

Floats = NDArray[np.float64]

# Colour vision that lacks one kind of cone, on linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
VISION = {
    "all cones": np.eye(3),
    "no long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no middle": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no short": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# Linear RGB to XYZ, and the white of daylight.
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str) -> Floats:
    value = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(light: Floats) -> Floats:
    value = XYZ @ light / WHITE
    root = np.where(value > 216 / 24389, np.cbrt(value), (24389 / 27 * value + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(XYZ[1] @ linear(colour)) + 0.05 for colour in (one, other))
    return high / low


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_any_two_stay_apart(colours: tuple[str, ...], vision: str) -> None:
    seen = [lab(np.clip(np.array(VISION[vision]) @ linear(colour), 0, 1)) for colour in colours]
    assert len(seen) == 10
    nearest = min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(seen, 2))
    assert nearest > 20  # a difference of 2 is just visible


@pytest.mark.parametrize(("colours", "dark", "least"), [(LIGHT, 0, 1.95), (DARK, 1, 3.0)], ids=["light", "dark"])
def test_all_stand_out_from_the_ground(colours: tuple[str, ...], dark: int, least: float) -> None:
    assert min(contrast(colour, GROUND["paper"][dark]) for colour in colours) >= least
    for words in ("ink", "soft"):
        assert contrast(GROUND[words][dark], GROUND["paper"][dark]) > 4.5


def test_the_style_has_both_forms() -> None:
    light, dark = style().split("@media (prefers-color-scheme:dark)")
    assert all(colour in light for colour in LIGHT) and all(colour in dark for colour in DARK)

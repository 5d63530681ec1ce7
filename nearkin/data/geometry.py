"""Which part of an image is shown: boxes in the coordinates of its pixels, computed for a whole batch at once.

A box is (left, top, width, height) in pixels of the source; what lies in it becomes ``size`` x ``size`` pixels
(`nearkin.data.resample`). Nothing here touches a pixel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nearkin import checks
from nearkin.noise import uniform

Floats = NDArray[np.float64]

NAMES = ("crop", "squash", "longer_side", "resized_crop")

TRIES = 10
_STREAM = 0x6E6B  # keeps these numbers apart from those that miners draw with the same seed and step
_MIRROR, _LEFT, _TOP, _FIRST_TRY = 0, 1, 2, 3


def noise(seed: int, step: int, rows: NDArray[np.int64], count: int) -> Floats:
    """Uniform numbers in [0, 1), (n, count), that are a function of (seed, step, row) only.

    So a resumed run, any number of workers and any number of ranks show an image the same way in the same step. An image
    that stands in a batch twice is shown the same way twice.

    >>> bool((noise(0, 7, np.array([3, 5]), 2)[1] == noise(0, 7, np.array([5]), 2)[0]).all())
    True
    """
    images, columns = torch.from_numpy(np.asarray(rows, np.int64))[:, None], torch.arange(count, device="cpu")
    key = (torch.tensor(number, device="cpu") for number in (seed, _STREAM, step))
    return uniform(*key, images, columns).numpy()


@dataclass(frozen=True)
class Geometry:
    """How images are cut for training, and for testing.

    | name           | training                                                          | test                         |
    |----------------|-------------------------------------------------------------------|------------------------------|
    | `crop`         | shorter side to `resize`, random crop of `size`                   | centre crop of the same      |
    | `squash`       | to `resize` x `resize`, aspect lost, random crop of `size`        | centre crop of the same      |
    | `longer_side`  | longer side to `resize`, padded to a square, random crop          | centre crop of the same      |
    | `resized_crop` | a box of random area and aspect, see below, to `size`             | as `crop`                    |

    `resized_crop` draws up to ten boxes whose share of the area lies between the two numbers of ``scale`` and whose width
    through height lies between those of ``aspect`` (evenly in its logarithm); the first that fits into the image counts;
    if none does, the largest centre box within the limits of aspect. Each training image is mirrored with probability
    ``mirror``, test images never. ``scale`` and ``aspect`` matter to `resized_crop` only; there ``resize`` matters to the
    test only and may be below ``size`` (then the centre square is shown whole).

    Sizes are relative: "shorter side to 256, crop of 224" shows 224/256 of the shorter side, whatever size the image has
    in the pack. Positions are whole pixels of the resized image, so where the shorter side is `resize` already, `crop`
    copies pixels without resampling.

    >>> crop = Geometry("crop", size=224, resize=256)
    >>> crop.center(np.array([256]), np.array([341])).tolist()
    [[58.0, 16.0, 224.0, 224.0]]
    """

    name: str = "crop"
    size: int = 224
    resize: int = 256
    scale: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    mirror: float = 0.5

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(checks.unknown("geometry", self.name, NAMES))
        for setting in ("size", "resize"):
            checks.setting(self.name, setting, getattr(self, setting), checks.COUNT)
        checks.setting(self.name, "mirror", self.mirror, checks.Limit(0, 1))
        if self.size > self.resize and self.name != "resized_crop":
            raise ValueError(
                f"{self.name}: size must be at most resize ({self.resize}), since a crop lies inside the resized image, "
                f"got {self.size}; raise resize."
            )
        self._check_range("scale", 1)
        self._check_range("aspect", math.inf)

    def _check_range(self, setting: str, most: float) -> None:
        value: Any = getattr(self, setting)
        fine = isinstance(value, (tuple, list)) and len(value) == 2 and all(checks.POSITIVE.allows(x) for x in value)
        if not fine or not value[0] <= value[1] <= most:
            bound = f" <= {most:g}" if math.isfinite(most) else ""
            came = (
                f"{value[0]!r} and {value[1]!r}"
                if isinstance(value, (tuple, list)) and len(value) == 2
                else repr(value)
            )
            raise ValueError(
                f"{self.name}: {setting} must be two numbers with 0 < low <= high{bound}, got {came}; change {setting}."
            )

    @property
    def draws(self) -> int:
        """Random numbers that one training image needs."""
        return _FIRST_TRY + (2 * TRIES if self.name == "resized_crop" else 0)

    @property
    def around(self) -> bool:
        """Whether the image is resized first and cut then, so that the filter sees the pixels around the box."""
        return self.name != "resized_crop"

    def boxes(self, heights: NDArray[Any], widths: NDArray[Any], noise: Floats) -> Floats:
        """Training boxes (n, 4) of images of these sizes, from (n, ``draws``) uniform numbers."""
        height, width = np.asarray(heights, np.float64), np.asarray(widths, np.float64)
        if self.name == "resized_crop":
            return self._resized_crop(height, width, noise)
        tall, wide, room_y, room_x = self._resized(height, width)
        top = np.floor(noise[:, _TOP] * (room_y - self.size + 1)) - (room_y - tall) // 2
        left = np.floor(noise[:, _LEFT] * (room_x - self.size + 1)) - (room_x - wide) // 2
        return self._in_source(left, top, width / wide, height / tall)

    def flips(self, noise: Floats) -> NDArray[np.bool_]:
        """Which training images are mirrored, (n,)."""
        return noise[:, _MIRROR] < self.mirror

    def center(self, heights: NDArray[Any], widths: NDArray[Any]) -> Floats:
        """Test boxes (n, 4)."""
        height, width = np.asarray(heights, np.float64), np.asarray(widths, np.float64)
        tall, wide, room_y, room_x = self._resized(height, width)
        top = np.rint((room_y - self.size) / 2) - (room_y - tall) // 2
        left = np.rint((room_x - self.size) / 2) - (room_x - wide) // 2
        return self._in_source(left, top, width / wide, height / tall)

    def _resized(self, height: Floats, width: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Height and width of the resized image, and of the canvas it is cut from."""
        if self.name == "squash":
            square = np.full_like(height, self.resize)
            return square, square, square, square
        if self.name == "longer_side":
            longer = np.maximum(height, width)
            tall, wide = (np.maximum(1, np.floor(self.resize * side / longer)) for side in (height, width))
            square = np.full_like(height, self.resize)
            return tall, wide, square, square
        shorter, resize = np.minimum(height, width), max(self.resize, self.size)
        tall, wide = np.floor(resize * height / shorter), np.floor(resize * width / shorter)
        return tall, wide, tall, wide

    def _in_source(self, left: Floats, top: Floats, per_x: Floats, per_y: Floats) -> Floats:
        return np.stack([left * per_x, top * per_y, self.size * per_x, self.size * per_y], 1)

    def _resized_crop(self, height: Floats, width: Floats, noise: Floats) -> Floats:
        tries = noise[:, _FIRST_TRY : _FIRST_TRY + 2 * TRIES]
        share = self.scale[0] + tries[:, :TRIES] * (self.scale[1] - self.scale[0])
        low, high = math.log(self.aspect[0]), math.log(self.aspect[1])
        aspect = np.exp(low + tries[:, TRIES:] * (high - low))
        area = (height * width)[:, None] * share
        wide, tall = np.rint(np.sqrt(area * aspect)), np.rint(np.sqrt(area / aspect))
        fits = (wide >= 1) & (tall >= 1) & (wide <= width[:, None]) & (tall <= height[:, None])
        first = fits.argmax(1)[:, None]
        box_width, box_height = (np.take_along_axis(side, first, 1)[:, 0] for side in (wide, tall))
        left = np.floor(noise[:, _LEFT] * (width - box_width + 1))
        top = np.floor(noise[:, _TOP] * (height - box_height + 1))
        found = np.stack([left, top, box_width, box_height], 1)
        return np.where(np.any(fits, axis=1, keepdims=True), found, self._largest(height, width))

    def _largest(self, height: Floats, width: Floats) -> Floats:
        """The largest centre box whose aspect lies within the limits."""
        wide = np.minimum(width, np.maximum(1, np.rint(height * self.aspect[1])))
        tall = np.minimum(height, np.maximum(1, np.rint(width / self.aspect[0])))
        return np.stack([(width - wide) // 2, (height - tall) // 2, wide, tall], 1)

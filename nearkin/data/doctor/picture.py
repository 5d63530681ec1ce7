"""One image looked at closely: the facts of its file, whether it decodes, and what it is compared by.

This is what a worker process does for each image; nothing here needs torch.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin.data.decode import BadImage, read_image
from nearkin.data.doctor.descriptor import SIDE as DESCRIBED_SIDE
from nearkin.data.doctor.descriptor import describe
from nearkin.data.doctor.facts import Header, cut_short, read_header
from nearkin.data.doctor.fingerprints import COLOUR_SIDE, GREY_SIDE, perceptual_hash
from nearkin.data.doctor.kinds import BLANK_LEVELS

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Facts:
    """What was learned about one image, pixels aside. ``failure``: (kind of finding, reason) where it cannot be read."""

    header: Header | None = None
    failure: tuple[str, str] | None = None
    checksum: str = ""
    height: int = 0
    width: int = 0
    blank: bool = False


@dataclass(frozen=True)
class Prints:
    """What an image is compared by: its hash and its mirror image's, coarse grey (32, 32) and colour (8, 8, 3) copies.

    ``crop`` (side, side, 3) is what a network sees, or empty; ``features`` are the plain description where there is no
    network, or empty.
    """

    hash: int
    mirror: int
    grey: Bytes
    colour: Bytes
    crop: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    features: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))


@dataclass(frozen=True)
class Wanted:
    """What to prepare beside the facts: a crop of this side for a network (0: none), the plain description."""

    crop: int = 0
    describe: bool = False


def look(source: str | Bytes, wanted: Wanted) -> tuple[Facts, Prints | None]:
    """The facts of an image, a path or an array, and its prints if it can be decoded."""
    if isinstance(source, np.ndarray):
        pixels = np.repeat(source[:, :, None], 3, 2) if source.ndim == 2 else source
        checksum = hashlib.sha256(repr(source.shape).encode() + np.ascontiguousarray(source).tobytes()).hexdigest()
        return _seen(pixels, None, checksum, wanted)
    header, checksum, content = None, "", b""
    try:
        content = _content(source)
        checksum = hashlib.sha256(content).hexdigest() if content else ""
        header = _header(content, source)
        pixels = read_image(content or source, name=source)
    except BadImage as bad:
        if content and (cut_short(content) or "cut short" in bad.reason):
            return Facts(header, ("truncated", "it is cut short"), checksum), None
        return Facts(header, ("unreadable", bad.reason), checksum), None
    except MemoryError:
        return Facts(header, ("unreadable", "there is not enough memory to decode it"), checksum), None
    return _seen(pixels, header, checksum, wanted)


def _content(path: str) -> bytes:
    """The bytes of a file; none where it cannot be read, which the decoder then puts in words."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _header(content: bytes, name: str) -> Header | None:
    try:
        return read_header(content, name)
    except Exception:  # decoders raise errors of every kind; reading the pixels says in words what is wrong
        return None


def _seen(pixels: Bytes, header: Header | None, checksum: str, wanted: Wanted) -> tuple[Facts, Prints]:
    from PIL import Image

    height, width = pixels.shape[:2]
    image: Any = Image.fromarray(np.ascontiguousarray(pixels))
    # Whole pixels averaged first: the small copies that follow then cost little even for a huge picture.
    factor = min(width, height) // (2 * max(wanted.crop, DESCRIBED_SIDE))
    if factor > 1:
        image = image.reduce(factor)

    def small(side: int) -> Any:
        return image.resize((side, side), Image.Resampling.BOX)

    grey = np.asarray(small(GREY_SIDE).convert("L"))
    prints = Prints(perceptual_hash(grey), perceptual_hash(grey[:, ::-1]), grey, np.asarray(small(COLOUR_SIDE)))
    if wanted.crop:
        prints = replace(prints, crop=_centre(image, wanted.crop))
    if wanted.describe:
        prints = replace(prints, features=describe(np.asarray(small(DESCRIBED_SIDE))))
    return Facts(header, None, checksum, height, width, _blank(pixels)), prints


def _centre(image: Any, side: int) -> Bytes:
    """The middle square of a picture, scaled to ``side``."""
    from PIL import Image

    edge = min(image.size)
    left, top = (image.width - edge) // 2, (image.height - edge) // 2
    middle = image.crop((left, top, left + edge, top + edge))
    return np.asarray(middle.resize((side, side), Image.Resampling.BILINEAR))


def _blank(pixels: Bytes) -> bool:
    """Whether all pixels have one colour. A sparse look first: most pictures show at once that they have more."""
    step = max(1, min(pixels.shape[:2]) // 64)
    for part in (pixels[::step, ::step], pixels):
        flat = part.reshape(-1, 3)
        if int((flat.max(0) - flat.min(0)).max()) > BLANK_LEVELS:
            return False
    return True

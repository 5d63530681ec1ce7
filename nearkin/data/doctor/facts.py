"""What a file says about its picture before the pixels are read: format, size, frames, orientation, depth."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import dataclass
from typing import Any

ORIENTATION = 274
BITS_PER_SAMPLE = 258

SAME_FORMAT = {"MPO": "JPEG", "DIB": "BMP"}
"""Formats that share file name endings with another one: a camera's several JPEGs in one file."""

UPRIGHT = {
    2: "mirrored", 3: "turned by 180 degrees", 4: "mirrored top to bottom", 5: "mirrored and turned by 90 degrees",
    6: "turned by 90 degrees", 7: "mirrored and turned by 270 degrees", 8: "turned by 270 degrees",
}  # fmt: skip
"""The EXIF orientations that are not upright, in words."""


@dataclass(frozen=True)
class Header:
    """The facts of one file; width and height as stored, before it is turned upright."""

    format: str
    mode: str
    width: int
    height: int
    frames: int = 1
    orientation: int = 1
    bits: int = 8
    alpha: bool = False
    palette: bool = False
    extension: str = ""
    """The format that the name's ending promises where the content is another one, else empty."""


def read_header(content: bytes, name: str) -> Header:
    """The facts of a file's content; raises what Pillow raises when it is no picture."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of huge pictures; the doctor reports them itself
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            with Image.open(io.BytesIO(content)) as image:
                return Header(
                    format=str(image.format),
                    mode=image.mode,
                    width=image.width,
                    height=image.height,
                    frames=_frames(image),
                    orientation=_orientation(image, content),
                    bits=_bits(image, content),
                    alpha=image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info,
                    palette=image.mode in ("P", "PA"),
                    extension=_promised(name, str(image.format)),
                )
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def _frames(image: Any) -> int:
    if image.format == "MPO":
        return 1  # a phone's photograph with its preview or its depth: no animation
    try:
        return int(getattr(image, "n_frames", 1))
    except (OSError, EOFError, ValueError, SyntaxError):
        return 1  # broken behind the first frame; reading the pixels tells


def _orientation(image: Any, content: bytes) -> int:
    if image.format == "PNG" and b"eXIf" not in content and b"exif" not in content:
        return 1  # Pillow would decode all pixels to look for it
    try:
        found = image.getexif().get(ORIENTATION, 1)
    except Exception:  # a broken EXIF block raises anything; the picture itself may be whole
        return 1
    return found if found in UPRIGHT else 1


def _bits(image: Any, content: bytes) -> int:
    """Bits of a channel. Pillow opens 16-bit colour as 8-bit, so the file is asked."""
    if image.format == "PNG" and len(content) > 24:
        return content[24]
    if image.format == "TIFF":
        depth = image.tag_v2.get(BITS_PER_SAMPLE, 8)
        return int(max(depth)) if isinstance(depth, tuple) else int(depth)
    if image.mode.startswith("I;16"):
        return 16
    return {"I": 16 if image.format == "PPM" else 32, "F": 32, "1": 1}.get(image.mode, 8)


def _promised(name: str, found: str) -> str:
    from PIL import Image

    ending = os.path.splitext(name)[1].lower()
    promised = Image.registered_extensions().get(ending, ending or "no ending")
    return "" if promised == SAME_FORMAT.get(found, found) else promised


def cut_short(content: bytes) -> bool:
    """Whether the content of a file ends before its format says it should.

    >>> cut_short(bytes.fromhex("ffd8ffe0") + bytes(20)), cut_short(b"hello")
    (True, False)
    """
    tail = content[-64:]
    if content.startswith(b"\xff\xd8\xff"):
        return b"\xff\xd9" not in tail
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return b"IEND" not in tail
    if content.startswith((b"GIF87a", b"GIF89a")):
        return b"\x3b" not in tail.rstrip(b"\0")[-1:]
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return int.from_bytes(content[4:8], "little") + 8 > len(content)
    if content.startswith(b"BM") and len(content) >= 6:
        return int.from_bytes(content[2:6], "little") > len(content)
    return False

"""Image files to pixels: upright, 8 bits, red green blue, whatever the file holds.

Run as a program, this file decodes for another process (`nearkin.data.decoders`), so it imports nothing of nearkin.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from PIL.Image import Image

Bytes = NDArray[np.uint8]


MOST_PIXELS = 178_956_970
"""Images with more pixels are refused: half a gigabyte each, and more often an attack than a picture."""

HEADER = struct.Struct("<?QII")
"""What a decoding process answers first: whether it went well, bytes that follow, height, width."""

BITS_PER_SAMPLE, PHOTOMETRIC, ORIENTATION = 258, 262, 0x0112


class BadImage(ValueError):  # noqa: N818 - it says what the image is
    """An image that cannot be used: which one, and why, in plain words."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def read_image(
    source: str | Path | bytes, *, name: str | None = None, side: int | None = None, most_pixels: int = MOST_PIXELS
) -> Bytes:
    """The pixels of an image file, or of a file's bytes, (height, width, 3) uint8.

    - The camera's orientation (EXIF) is applied.
    - Grey of 9 to 16 bits is scaled from its full range; whole numbers beyond 16 bits are stretched from their
      lowest to their highest value. Floating point is taken as 0 to 1, else as 0 to 255, else stretched so.
    - Transparent pixels show white behind them. Palette, black and white, CMYK, YCbCr, HSV and Lab become RGB; CMYK by
      the plain formula, without its colour profile.
    - Of an animation the first frame is taken.
    - ``side``: shrink an image whose shorter side is longer than this to this, aspect preserved (the longer side is
      rounded down), by an antialiased triangle filter; a smaller one stays. A large JPEG is then decoded at a
      fraction of its size, never below twice the side.

    A file that is missing, empty, cut short, no image or of more than ``most_pixels`` raises ``BadImage``, which
    says so. Warnings of the decoder are silenced; Python's list of warning filters is touched meanwhile, which is
    not safe against other threads that change it.

    >>> read_image(b"no image", name="note.txt")
    Traceback (most recent call last):
    nearkin.data.decode.BadImage: note.txt: it is not an image of a kind that is known
    """
    called = name if name is not None else ("an image in memory" if isinstance(source, bytes) else os.fspath(source))
    try:
        with warnings.catch_warnings(), _opened(source) as file:
            warnings.simplefilter("ignore")
            return _decode(file, side, most_pixels)
    except Exception as error:
        raise BadImage(called, _reason(error)) from error


def from_pillow(image: Image, *, side: int | None = None) -> Bytes:
    """The pixels of a Pillow image, (height, width, 3) uint8, by the rules of ``read_image``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_size(image, MOST_PIXELS)
            return _upright(image, side)
    except Exception as error:
        raise BadImage(getattr(image, "filename", "") or "a Pillow image", _reason(error)) from error


def shrink(pixels: Bytes, side: int | None) -> Bytes:
    """Pixels (height, width, 3) or (height, width) with the shorter side at most ``side``, as ``read_image`` does it.

    >>> shrink(np.zeros((60, 91, 3), np.uint8), 30).shape, shrink(np.zeros((20, 90), np.uint8), 30).shape
    ((30, 45, 3), (20, 90))
    """
    if side is None or min(pixels.shape[:2]) <= side:
        return pixels
    from PIL import Image

    return np.asarray(_shrunk(Image.fromarray(pixels), side))


def _shrunk(image: Image, side: int) -> Image:
    from PIL.Image import Resampling

    width, height = image.size
    if min(width, height) <= side:
        return image
    size = (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
    return image.resize(size, Resampling.BILINEAR)


@contextmanager
def _opened(source: str | Path | bytes) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        if not source:
            raise _Refused("it is empty")
        yield io.BytesIO(source)
        return
    found = os.stat(source)
    if stat.S_ISDIR(found.st_mode):
        raise _Refused("it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise _Refused("it is not a file")  # a pipe would wait for ever
    if not found.st_size:
        raise _Refused("the file is empty")
    with open(source, "rb") as file:
        yield file


class _Refused(Exception):  # noqa: N818
    """A reason in plain words."""


def _reason(error: Exception) -> str:
    """Why an image cannot be used. Decoders raise errors of every kind, so the words come from kind and text."""
    from PIL import Image, UnidentifiedImageError

    text = " ".join(str(error).split())
    if isinstance(error, _Refused):
        return text
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "it may not be read"
    if isinstance(error, UnidentifiedImageError):
        return "it is not an image of a kind that is known"
    if isinstance(error, Image.DecompressionBombError):
        return "it has too many pixels"
    if isinstance(error, MemoryError):
        return "there is not enough memory to decode it"
    if "truncated" in text.lower() or isinstance(error, EOFError):
        return "it is cut short"
    return f"it is damaged ({text[:120] or type(error).__name__})"


def _decode(file: BinaryIO, side: int | None, most_pixels: int) -> Bytes:
    from PIL import Image

    with Image.open(file) as image:
        _check_size(image, most_pixels)
        if side is not None:
            # Twice the side: what the JPEG decoder averages then differs little from the filter's own average.
            image.draft(None, (2 * side, 2 * side))
        return _upright(image, side)


def _check_size(image: Image, most_pixels: int) -> None:
    width, height = image.size
    if not width or not height:
        raise _Refused("it has no pixels")
    if width * height > most_pixels:
        raise _Refused(f"it has {width} x {height} pixels, more than {most_pixels:,}")


def _upright(image: Image, side: int | None) -> Bytes:
    """The pixels of an image that is open: turned as the camera says, in 8 bits of red, green and blue, shrunk."""
    image.load()
    # After loading, because TIFF files are turned by the decoder itself, which then drops the tag.
    turn = _turn(image)
    upright = _rgb(image)
    if side is not None:
        upright = _shrunk(upright, side)
    if turn is not None:
        upright = upright.transpose(turn)
    return np.asarray(upright)


def _turn(image: Image) -> Any:
    """How to put an image upright, or None. A damaged EXIF block says nothing about the pixels, so it is passed over."""
    from PIL.Image import Transpose

    try:
        orientation = image.getexif().get(ORIENTATION, 1)
    except Exception:
        return None
    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return turns.get(orientation) if isinstance(orientation, int) else None


def _rgb(image: Image) -> Image:
    """An image of any mode as 8-bit RGB."""
    from PIL import Image as Pillow

    mode = image.mode
    if mode == "RGB" and "transparency" not in image.info:
        return image
    if mode.startswith("I;16") or mode in ("I", "F"):
        grey = _eight_bits(image)
        return Pillow.fromarray(np.repeat(grey[:, :, None], 3, 2))
    if mode == "LAB":
        return _from_lab(image)
    if mode in ("La", "RGBa"):  # colours already multiplied by their alpha
        image = image.convert("LA" if mode == "La" else "RGBA")
    if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
        try:
            over = image.convert("RGBA")
        except (ValueError, TypeError, OverflowError):  # a transparent colour that no pixel of this mode can have
            image.info.pop("transparency", None)
            return image.convert("RGB")
        white = Pillow.new("RGBA", image.size, (255, 255, 255, 255))
        white.alpha_composite(over)
        return white.convert("RGB")
    return image.convert("RGB")


def _eight_bits(image: Image) -> Bytes:
    """Grey of more than 8 bits, (height, width), scaled to 0 ... 255."""
    values = np.asarray(image)
    if image.mode == "F":
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            raise _Refused("it holds values that are not finite")
        low, high = float(values.min()), float(values.max())
        if low >= 0 and high <= 1:
            low, high = 0.0, 1.0
        elif low >= 0 and high <= 255:
            low, high = 0.0, 255.0
        return np.rint((values - low) * (255 / (high - low or 1))).astype(np.uint8)
    whole = values.astype(np.int64)
    low, high = 0, 65535
    if image.mode.startswith("I;16"):
        tags: Any = getattr(image, "tag_v2", {})
        bits = tags.get(BITS_PER_SAMPLE, (16,))[0]
        high = 2**bits - 1 if 8 < bits < 16 else high
        if tags.get(PHOTOMETRIC) == 0:  # white is zero; Pillow turns round 8 bits only
            whole = high - whole
    elif whole.min() < 0 or whole.max() > 65535:
        low, high = int(whole.min()), int(whole.max())
    span = high - low or 1
    return (((whole - low) * 255 + span // 2) // span).clip(0, 255).astype(np.uint8)


def _from_lab(image: Image) -> Image:
    try:
        from PIL import ImageCms

        lab, screen = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        found = ImageCms.applyTransform(image, ImageCms.buildTransform(lab, screen, "LAB", "RGB"))
    except ImportError as error:
        raise _Refused("it is in Lab colours, which this Pillow cannot convert") from error
    assert found is not None
    return found


def serve(requests: BinaryIO, answers: BinaryIO, side: int | None) -> None:
    """Decode files for another process until it closes ``requests``.

    A request is the length of a path and the path; an answer is a ``HEADER``, then the pixels or the reason.
    """
    answers.write(b"!")  # ready
    answers.flush()
    while length := requests.read(4):
        path = os.fsdecode(requests.read(int.from_bytes(length, "little")))
        try:
            pixels = read_image(path, side=side)
        except BadImage as bad:
            reason = bad.reason.encode("utf-8", "replace")
            answers.write(HEADER.pack(False, len(reason), 0, 0) + reason)
        else:
            height, width, _ = pixels.shape
            answers.write(HEADER.pack(True, pixels.nbytes, height, width))
            answers.write(np.ascontiguousarray(pixels).data)
        answers.flush()


def _main() -> None:
    # What a library prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    side = int(sys.argv[1]) or None
    import PIL.Image

    PIL.Image.init()
    serve(sys.stdin.buffer, answers, side)


if __name__ == "__main__":
    try:
        _main()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # whoever asked is gone

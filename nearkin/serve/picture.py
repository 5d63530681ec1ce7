"""Large pictures for the page: quick to make, because a search waits for them."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

LARGE = 1024
"""Longer side."""
QUALITY = 88


def picture(pixels: NDArray[np.uint8], side: int = LARGE) -> bytes:
    """A JPEG picture whose longer side is at most ``side``.

    >>> picture(np.zeros((30, 60, 3), np.uint8))[:3]
    b'\\xff\\xd8\\xff'
    """
    from PIL import Image

    found = Image.fromarray(pixels)
    found.thumbnail((side, side), Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    found.save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return buffer.getvalue()


def kind(content: bytes) -> str:
    """The media type of a picture that this server made: JPEG, or WebP from the index."""
    return "image/webp" if content[8:12] == b"WEBP" else "image/jpeg"

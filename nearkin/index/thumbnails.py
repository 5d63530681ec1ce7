"""Small pictures to show what was found."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

SIDE = 192
QUALITY = 80


def thumbnail(pixels: NDArray[np.uint8], side: int = SIDE) -> bytes:
    """A WebP picture whose longer side is at most ``side``.

    >>> thumbnail(np.zeros((300, 600, 3), np.uint8))[8:12]
    b'WEBP'
    """
    from PIL import Image

    picture = Image.fromarray(pixels)
    picture.thumbnail((side, side))
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=QUALITY, method=4)
    return buffer.getvalue()

"""A plain description of a picture for when no network is at hand: edges, colours and a coarse copy.

It tells a red bird from a blue car and little more. The doctor calibrates what it makes of it on the data, so that weak
features make it say less, not more wrong things.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIDE = 64
LENGTH = 128 + 64 + 192


def describe(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The 384 features of a colour picture (64, 64, 3): three blocks, each of unit length."""
    colours: NDArray[np.float32] = picture.astype(np.float32) / np.float32(255)
    grey: NDArray[np.float32] = colours @ np.array([0.299, 0.587, 0.114], np.float32)
    coarse = colours.reshape(8, 8, 8, 8, 3).mean((1, 3))
    blocks = (np.sqrt(_edges(grey)), np.sqrt(_palette(picture)), (coarse - coarse.mean((0, 1))).ravel())
    return np.concatenate([block / max(float(np.linalg.norm(block)), 1e-6) for block in blocks]).astype(np.float32)


def _edges(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """How strong edges of 8 directions are in each of 4 x 4 cells, (128,)."""
    down, across = np.gradient(grey)
    strength = np.hypot(down, across).ravel()
    # An edge from dark to light is the same edge as from light to dark.
    direction = ((np.arctan2(down, across) % np.pi) * (8 / np.pi)).astype(np.int64).ravel() % 8
    cell = np.arange(SIDE) // (SIDE // 4)
    place = (cell[:, None] * 4 + cell).ravel()
    return np.bincount(place * 8 + direction, strength, 128).astype(np.float32)


def _palette(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """How often each of 4 x 4 x 4 colours occurs, (64,)."""
    level = (picture >> 6).astype(np.int64).reshape(-1, 3)
    return np.bincount(level @ np.array([16, 4, 1]), minlength=64).astype(np.float32)

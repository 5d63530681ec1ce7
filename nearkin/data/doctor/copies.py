"""Which images are copies of each other: the same file twice, or nearly the same picture.

A hash proposes pairs, small copies of the two pictures decide. Two pictures count as one if their grey copies,
without their overall gradient, correlate to ``ALIKE`` and their colours to ``COLOURS_ALIKE``. In data whose pictures
all resemble each other, such as digits, pairs beyond that occur by chance; the bar is then raised until fewer than one
is expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearkin.data.doctor.fingerprints import GREY_SIDE, Bytes, Hashes, Rows, close_pairs

ALIKE = 0.95
COLOURS_ALIKE = 0.9

LEAST_DETAIL = 3.0
"""Pictures whose grey levels deviate less than this from a plain gradient are too empty to be compared."""

BY_CHANCE = 0.5
"""Pairs that may be expected to pass the bar by chance."""

FEW = 8
"""So few pairs just below the bar are no sign that others pass it by chance."""

AT_ONCE = 4096

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]


@dataclass(frozen=True)
class Pair:
    """Two rows, first < second, that show one picture. ``alike`` is None for the same file, else a correlation."""

    first: int
    second: int
    alike: float | None = None
    mirrored: bool = False


def same_files(checksums: Sequence[str]) -> list[list[int]]:
    """Groups of rows with equal checksums; an empty one stands for a file that could not be read.

    >>> same_files(["a", "b", "a", "", "", "a"])
    [[0, 2, 5]]
    """
    groups: dict[str, list[int]] = {}
    for row, checksum in enumerate(checksums):
        if checksum:
            groups.setdefault(checksum, []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def near_copies(hashes: Hashes, mirrors: Hashes, grey: Bytes, colour: Bytes) -> list[Pair]:
    """Pairs of nearly equal pictures, from hashes of them and of their mirror images (n,), and coarse copies of them:
    ``grey`` (n, 32, 32) and ``colour`` (n, 8, 8, 3)."""
    detail, shapes = _prepared(grey, flattened)
    rows = np.flatnonzero(detail >= LEAST_DETAIL)
    _, colours = _prepared(colour, _plain)
    found: dict[tuple[int, int], Pair] = {}
    for mirrored in (False, True):
        first, second = (rows[side] for side in close_pairs(hashes[rows], mirrors[rows] if mirrored else None))
        alike = _correlations(first, second, shapes, mirrored)
        near = np.flatnonzero(alike > bar(alike))
        near = near[_correlations(first[near], second[near], colours, mirrored) > COLOURS_ALIKE]
        for place in near:
            pair = Pair(int(first[place]), int(second[place]), float(min(alike[place], 1.0)), mirrored)
            # A picture that is its own mirror image is found both ways; it is a plain copy.
            found.setdefault((pair.first, pair.second), pair)
    return sorted(found.values(), key=lambda pair: (pair.first, pair.second))


def bar(alike: Floats) -> float:
    """The correlation above which fewer than one pair is there by chance.

    Let s = 1 - correlation. The number of unrelated pairs below s grows like a power of s. The pairs between s = 0.05
    and 0.1, which are no copies, tell the power and the number; the law is then followed down to where ``BY_CHANCE``
    pairs are left.
    """
    distance = 1 - alike.astype(np.float64)
    edge = 1 - ALIKE
    inner = int(((distance >= edge) & (distance < edge * math.sqrt(2))).sum())
    outer = int(((distance >= edge * math.sqrt(2)) & (distance < edge * 2)).sum())
    if inner + outer < FEW:
        return ALIKE
    power = min(max(2 * math.log2(max(outer, 1) / max(inner, 1)), 2.0), 16.0)
    # Each ring holds sqrt(2) ** power times what the ring inside it holds.
    below = max(inner, outer / math.sqrt(2) ** power) / (math.sqrt(2) ** power - 1)
    return 1 - edge * min(1.0, (BY_CHANCE / below) ** (1 / power))


def components(count: int, pairs: Sequence[tuple[int, int]]) -> Rows:
    """For each of ``count`` rows the lowest row that it is linked to, directly or through others.

    >>> components(5, [(1, 3), (3, 4)]).tolist()
    [0, 1, 2, 1, 1]
    """
    lowest = list(range(count))

    def root(row: int) -> int:
        while lowest[row] != row:
            lowest[row] = lowest[lowest[row]]
            row = lowest[row]
        return row

    for first, second in pairs:
        one, other = sorted((root(first), root(second)))
        lowest[other] = one
    return np.array([root(row) for row in range(count)], np.int64)


_AXIS = (np.arange(GREY_SIDE) - (GREY_SIDE - 1) / 2).astype(np.float32)
_AXIS /= np.sqrt((_AXIS**2).mean())


def flattened(grey: Bytes) -> Floats:
    """Grey pictures without their mean and their linear gradient: any two skies share those."""
    levels = grey.astype(np.float32)
    levels -= levels.mean((1, 2), keepdims=True)
    down, across = (levels * _AXIS[:, None]).mean((1, 2)), (levels * _AXIS).mean((1, 2))
    levels -= down[:, None, None] * _AXIS[:, None]
    levels -= across[:, None, None] * _AXIS
    return levels


def _plain(colour: Bytes) -> Floats:
    return colour.astype(np.float32)


def _prepared(pictures: Bytes, prepare: Callable[[Bytes], Floats]) -> tuple[Floats, Halves]:
    """How much there is to see in each picture (n,), and the pictures with mean 0 and length 1, in half precision."""
    detail, units = np.empty(len(pictures), np.float32), np.empty(pictures.shape, np.float16)
    for start in range(0, len(pictures), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        flat = prepare(pictures[part]).reshape(len(pictures[part]), -1)
        flat = flat - flat.mean(1, keepdims=True)
        detail[part] = flat.std(1)
        flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)
        units[part] = flat.reshape(pictures[part].shape)
    return detail, units


def _correlations(first: Rows, second: Rows, units: Halves, mirrored: bool) -> Floats:
    """The correlation of each pair of prepared pictures."""
    found = np.empty(len(first), np.float32)
    for start in range(0, len(first), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        ones, others = units[first[part]], units[second[part]]
        ones = ones[:, :, ::-1] if mirrored else ones
        flat = (len(ones), -1)
        product = ones.astype(np.float32).reshape(flat), others.astype(np.float32).reshape(flat)
        found[part] = np.einsum("ij,ij->i", *product)
    return found

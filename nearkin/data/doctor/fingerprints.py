"""Fingerprints of pictures: a 64-bit hash that changes little when a picture does, and a search for close hashes.

The hash is the signs of the 64 lowest frequencies of the grey picture (its cosine transform, without the mean).
Storing a picture anew, resizing it or changing its brightness turns few of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]
Rows = NDArray[np.int64]

GREY_SIDE = 32
COLOUR_SIDE = 8

RADIUS = 7
"""Hashes that differ in at most this many of 64 bits are candidates."""

BANDS = 4
"""The hash is cut into this many words of 16 bits: with 7 turned bits at least one word has at most one of them."""

CROWD = 128
"""Rows with one word that a row is compared with at most."""

AT_ONCE = 2**21
"""Pairs that are compared together; bounds the memory of a search."""


def _frequencies() -> list[tuple[int, int]]:
    """(vertical, horizontal) of the 64 lowest frequencies but the mean, lowest first."""
    every = [(vertical, horizontal) for vertical in range(12) for horizontal in range(12)]
    return sorted(every, key=lambda pair: (sum(pair), pair))[1:65]


FREQUENCIES = _frequencies()
_HIGHEST = 1 + max(max(pair) for pair in FREQUENCIES)
_COSINES = np.cos(np.pi / GREY_SIDE * np.outer(np.arange(_HIGHEST), np.arange(GREY_SIDE) + 0.5))
_VERTICAL, _HORIZONTAL = (np.array(axis) for axis in zip(*FREQUENCIES, strict=True))
# Neighbouring frequencies resemble each other, so each of the four words takes every fourth of them.
_SHIFTS = np.array([(place % BANDS) * 16 + place // BANDS for place in range(64)], np.uint64)

ABSENT = 0.02
"""A frequency weaker than this, against the mean of all, is not there: its sign would be chance, as in symmetric things."""


def perceptual_hash(grey: Bytes) -> int:
    """The 64-bit hash of a grey picture (32, 32).

    >>> ramp = np.tile(np.arange(0, 256, 8, dtype=np.uint8), (32, 1))
    >>> perceptual_hash(ramp) == perceptual_hash(ramp // 2 + 40)
    True
    """
    spectrum = (_COSINES @ grey.astype(np.float64) @ _COSINES.T)[_VERTICAL, _HORIZONTAL]
    positive = spectrum > ABSENT * np.sqrt((spectrum**2).mean()) + 1e-6
    return int((positive.astype(np.uint64) << _SHIFTS).sum())


def bits_set(values: Hashes) -> NDArray[np.int64]:
    """How many of the 64 bits are set.

    >>> bits_set(np.array([0, 7, 2**64 - 1], np.uint64)).tolist()
    [0, 3, 64]
    """
    if hasattr(np, "bitwise_count"):  # numpy 2
        return np.bitwise_count(values).astype(np.int64)
    return _OF_WORD[np.ascontiguousarray(values).view(np.uint16).reshape(-1, 4)].sum(1, dtype=np.int64)


_OF_WORD = np.array([bin(word).count("1") for word in range(2**16)], np.uint8)


def close_pairs(hashes: Hashes, asking: Hashes | None = None) -> tuple[Rows, Rows]:
    """The pairs of rows (first < second) whose hashes differ in at most RADIUS bits.

    ``asking`` (n,): other hashes of the same rows, such as those of their mirror images, for the first of each pair.

    Rows are looked up by each of their four 16-bit words, as they are and with one bit turned, so the work grows with
    the number of rows that share a word and not with all pairs. No pair is missed unless more than CROWD rows share a
    word: then a row is compared with the next CROWD of them, which bounds the work for films and blank pages.

    >>> close_pairs(np.array([0, 2**40, 127, 2**20 - 1], np.uint64))
    (array([0, 0]), array([1, 2]))
    """
    count = max(len(hashes), 1)
    rows = np.arange(len(hashes))
    asking = hashes if asking is None else asking
    found = [np.empty(0, np.int64)]
    for band in range(BANDS):
        shift, word = np.uint64(16 * band), np.uint64(0xFFFF)
        words = ((hashes >> shift) & word).astype(np.int64)
        wanted = ((asking >> shift) & word).astype(np.int64)
        # Sorted by word, then row: the rows after a given one that have a given word stand side by side.
        sorted_keys = np.sort(words * count + rows)
        ends = np.cumsum(np.bincount(words, minlength=2**16))
        for turned in (0, *(1 << bit for bit in range(16))):
            near = wanted ^ turned
            starts = np.searchsorted(sorted_keys, near * count + rows, side="right")
            sizes = np.minimum(ends[near] - starts, CROWD)
            found += _compare(hashes, asking, sorted_keys % count, starts, sizes)
    pairs = np.unique(np.concatenate(found))
    return pairs // count, pairs % count


def _compare(hashes: Hashes, asking: Hashes, order: Rows, starts: Rows, sizes: Rows) -> list[Rows]:
    """The close ones among each row and the ``sizes`` rows from ``starts`` on in ``order``, as first * n + second."""
    ends = np.cumsum(sizes)
    found, row = [], 0
    while row < len(sizes):
        done = int(ends[row - 1]) if row else 0
        last = max(row + 1, int(np.searchsorted(ends, done + AT_ONCE, side="right")))
        part = slice(row, last)
        first = np.repeat(np.arange(row, last), sizes[part])
        within = np.arange(int(ends[last - 1]) - done) - np.repeat(ends[part] - sizes[part] - done, sizes[part])
        second = order[np.repeat(starts[part], sizes[part]) + within]
        close = bits_set(asking[first] ^ hashes[second]) <= RADIUS
        found.append(first[close] * len(hashes) + second[close])
        row = last
    return found

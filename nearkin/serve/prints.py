"""What pictures are compared by, many of them at once: hashes, and coarse grey and colour copies.

They are the prints of the doctor (`nearkin.data.doctor`): a 64-bit hash proposes, the copies decide. Every pair of hashes
is compared, so more bits may differ than where pairs are looked up; and small pictures that were stored anew with losses are
recognised by coarser copies, which their noise does not reach.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearkin.data.doctor.copies import COLOURS_ALIKE, LEAST_DETAIL, bar, flattened
from nearkin.data.doctor.fingerprints import COLOUR_SIDE, GREY_SIDE, bits_set
from nearkin.data.doctor.picture import Wanted, look
from nearkin.index import Index

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Tell = Callable[[int, int], None]
RADIUS = 10
"""Hashes that differ in at most this many of 64 bits are looked at closely."""
FINE = 0.85
"""Least correlation of the grey copies as they are; at half their size it must reach the bar, 0.95 or more."""
AT_ONCE = 2**21
"""Pairs of hashes that are compared together; bounds the memory."""
BLOCK = 4096
"""Pairs of copies that are compared together."""


@dataclass(frozen=True)
class Prints:
    """Hashes of pictures and of their mirror images (n,), grey copies (n, 32, 32) and colour copies (n, 8, 8, 3).

    ``plain`` (n,): pictures with too little to see in them to be compared.
    """

    hashes: NDArray[np.uint64]
    mirrors: NDArray[np.uint64]
    grey: Bytes
    colour: Bytes
    plain: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass(frozen=True)
class Copy:
    """Rows of two pictures that show the same; ``alike`` is the correlation of their grey copies at half size."""

    first: int
    second: int
    alike: float
    mirrored: bool


def of_index(index: Index, numbers: Iterable[int]) -> Iterator[Bytes]:
    """The small pictures that the index keeps: the files may be gone or changed."""
    from PIL import Image

    for number in numbers:
        yield np.asarray(Image.open(io.BytesIO(index.thumbnail(number))).convert("RGB"))


def taken(pictures: Iterable[Bytes], count: int, tell: Tell) -> Prints:
    """The prints of ``count`` pictures (height, width, 3), one after the other."""
    hashes, mirrors = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    grey = np.zeros((count, GREY_SIDE, GREY_SIDE), np.uint8)
    colour = np.zeros((count, COLOUR_SIDE, COLOUR_SIDE, 3), np.uint8)
    for place, pixels in enumerate(pictures):
        found = look(pixels, Wanted())[1]
        assert found is not None  # pixels are there already
        hashes[place], mirrors[place], grey[place], colour[place] = found.hash, found.mirror, found.grey, found.colour
        if place % 32 == 31 or place == count - 1:
            tell(place + 1, count)
    plain = np.zeros(count, bool)
    for begin in range(0, count, BLOCK):
        flat = flattened(grey[begin : begin + BLOCK])
        plain[begin : begin + BLOCK] = flat.reshape(len(flat), -1).std(1) < LEAST_DETAIL
    return Prints(hashes, mirrors, grey, colour, plain)


def copies(first: Prints, second: Prints, tell: Tell) -> list[Copy]:
    """Pictures of ``first`` that show the same as one of ``second``, all pairs looked at; the most alike first.

    Hashes of all pairs are compared. Where they are close, the grey copies must correlate to ``FINE`` and at half their
    size to 0.95, or more in data whose pictures all resemble each other (`nearkin.data.doctor.copies.bar`), and the
    colours to ``COLOURS_ALIKE``.
    """
    found: dict[tuple[int, int], Copy] = {}
    ones, others = np.flatnonzero(~first.plain), np.flatnonzero(~second.plain)
    step = max(1, AT_ONCE // max(1, len(others)))
    total = 2 * len(ones)
    for mirrored in (False, True):
        asking = (first.mirrors if mirrored else first.hashes)[ones]
        pairs = [np.empty((0, 2), np.int64)]
        for begin in range(0, len(ones), step):
            block = asking[begin : begin + step, None] ^ second.hashes[others]
            close = (bits_set(block.ravel()) <= RADIUS).reshape(block.shape)
            rows, columns = np.nonzero(close)
            pairs.append(np.stack([ones[begin + rows], others[columns]], 1))
            tell(min(begin + step, len(ones)) + (len(ones) if mirrored else 0), total)
        for copy in _kept(first, second, np.concatenate(pairs), mirrored):
            # A picture that is its own mirror image is found both ways; it is a plain copy.
            found.setdefault((copy.first, copy.second), copy)
    return sorted(found.values(), key=lambda copy: (-copy.alike, copy.first, copy.second))


def confirmed(prints: Prints, pairs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of the pairs of rows that show the same picture, by their copies alone; plain pictures show nothing."""
    seen = [pair for pair in pairs if not prints.plain[list(pair)].any()]
    rows = np.array(seen, np.int64).reshape(-1, 2)
    return {(copy.first, copy.second) for way in (False, True) for copy in _kept(prints, prints, rows, way)}


def _kept(first: Prints, second: Prints, near: NDArray[np.int64], mirrored: bool) -> list[Copy]:
    """Of pairs of rows those whose grey and colour copies agree."""
    alike = _alike(first.grey, second.grey, near, _coarse, mirrored)
    near, alike = near[alike > (least := bar(alike))], alike[alike > least]
    kept = _alike(first.grey, second.grey, near, flattened, mirrored) > FINE
    kept &= _alike(first.colour, second.colour, near, _levels, mirrored) > COLOURS_ALIKE
    found = zip(near[kept].tolist(), alike[kept].tolist(), strict=True)
    return [Copy(one, other, min(correlation, 1.0), mirrored) for (one, other), correlation in found]


def _alike(
    first: Bytes,
    second: Bytes,
    pairs: NDArray[np.int64],
    prepare: Callable[[Bytes], Floats],
    mirrored: bool,
) -> Floats:
    """The correlation of the copies of each pair."""
    found = np.empty(len(pairs), np.float32)
    for begin in range(0, len(pairs), BLOCK):
        part = pairs[begin : begin + BLOCK]
        one = first[part[:, 0]]
        one = one[:, :, ::-1] if mirrored else one
        sides = [_unit(prepare(side)) for side in (one, second[part[:, 1]])]
        found[begin : begin + BLOCK] = np.einsum("ij,ij->i", *sides)
    return found


def _coarse(grey: Bytes) -> Floats:
    """Grey copies without mean and gradient, at half their size."""
    half = GREY_SIDE // 2
    return np.asarray(flattened(grey).reshape(-1, half, 2, half, 2).mean((2, 4)))


def _levels(colour: Bytes) -> Floats:
    return colour.astype(np.float32)


def _unit(levels: Floats) -> Floats:
    """Pictures as vectors of mean 0 and length 1."""
    flat = levels.reshape(len(levels), -1)
    flat = flat - flat.mean(1, keepdims=True)
    return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6))

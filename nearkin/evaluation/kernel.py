"""The screening of pairs on a GPU: matrix products whose entries are looked at where they arise and never written.

Few pairs of a large gallery matter to a ranking. ``find`` puts together those that reach the lowest bound of either side;
where everybody asks everybody, each pair is looked at once and serves both. ``judge`` then compares them with every bound:
it counts those that are clear and puts together those too close to tell. ``count`` is for the sample that tells beforehand
which bounds matter. Counts are whole numbers, so that the order in which programs add to them changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = 128
STRETCH = 64
GROUP = 8
WARPS, STAGES = 8, 3
PIECE = 256
"""Pairs that a program judges."""
CUT = 2.0**-15
"""By how much at most values are cut off, in shares of them: their last eight bits hold columns."""


@triton.jit  # type: ignore[untyped-decorator]
def _place(first, tall, wide, GROUP: tl.constexpr):  # type: ignore[no-untyped-def]
    """The row and the column of this program's tile. A few rows of tiles go through the columns together, so that what one
    of them reads is still near for the next."""
    number = tl.program_id(0)
    group = number // (GROUP * wide)
    height = tl.minimum(tall - group * GROUP, GROUP)
    within = number % (GROUP * wide)
    return first + group * GROUP + within % height, within // height


@triton.jit  # type: ignore[untyped-decorator]
def _similarities(  # type: ignore[no-untyped-def]
    queries, gallery, rows, columns, asking, answering,
    DIM: tl.constexpr, SIDE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """The inner products of rows and columns; those beyond the last are others, to be left out."""
    steps = tl.arange(0, STEP)
    left = queries + (rows % asking)[:, None].to(tl.int64) * DIM + steps[None, :]
    right = gallery + (columns % answering)[None, :].to(tl.int64) * DIM + steps[:, None]
    found = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for begin in range(0, DIM, STEP):
        found = tl.dot(tl.load(left + begin), tl.load(right + begin), found)
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _count(  # type: ignore[no-untyped-def]
    queries, gallery, high, start, end, before, number_of_slots, tall, wide, asking, answering,
    SLOTS: tl.constexpr, DIM: tl.constexpr, SIDE: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tile_row, tile_column = _place(0, tall, wide, GROUP)
    rows = tile_row * SIDE + tl.arange(0, SIDE)
    columns = tile_column * SIDE + tl.arange(0, SIDE)
    found = _similarities(queries, gallery, rows, columns, asking, answering, DIM, SIDE, STEP)
    there = rows < asking
    begins = tl.load(start + rows, mask=there, other=0)[:, None]
    ends = tl.load(end + rows, mask=there, other=0)[:, None]
    outside = ((columns[None, :] < begins) | (columns[None, :] >= ends)) & (columns < answering)[None, :]
    found = tl.where(outside, found, float("-inf"))
    # Most bounds lie above everything in a tile, and are passed over at the price of one comparison for each row.
    top = tl.max(found, 1)
    for slot in range(tl.load(number_of_slots + tile_row)):
        place = rows.to(tl.int64) * SLOTS + slot
        bound = tl.load(high + place, mask=there, other=float("inf"))
        if tl.max((top >= bound).to(tl.int32), 0) > 0:
            above = tl.sum((found >= bound[:, None]).to(tl.int32), 1)
            tl.atomic_add(before + place, above, mask=there & (above > 0), sem="relaxed")


@triton.jit  # type: ignore[untyped-decorator]
def _find(  # type: ignore[no-untyped-def]
    queries, gallery, floor, start, end, pairs, values, counter, first, tall, wide, asking, answering, capacity,
    DIM: tl.constexpr, SIDE: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr, BOTH: tl.constexpr,
):  # fmt: skip
    tile_row, tile_column = _place(first, tall, wide, GROUP)
    if BOTH and tile_column < tile_row:
        return  # its mirror image does it
    rows = tile_row * SIDE + tl.arange(0, SIDE)
    columns = tile_column * SIDE + tl.arange(0, SIDE)
    found = _similarities(queries, gallery, rows, columns, asking, answering, DIM, SIDE, STEP)
    there, across = rows < asking, columns < answering
    least = tl.load(floor + rows, mask=there, other=float("inf"))[:, None]
    # Items of the query's own class are counted by their order, elsewhere.
    ends = tl.load(end + rows, mask=there, other=2147483647)[:, None]
    if BOTH:
        # A class is a stretch that holds its queries: what comes behind it is looked at here, what comes before it where
        # the other one is the row.
        hit = (columns[None, :] >= ends) & across[None, :]
        least = tl.minimum(least, tl.load(floor + columns, mask=across, other=float("inf"))[None, :])
    else:
        begins = tl.load(start + rows, mask=there, other=0)[:, None]
        hit = ((columns[None, :] < begins) | (columns[None, :] >= ends)) & across[None, :]
    # Value and column in one number, all different in a row: its largest is taken out until none is left, mostly once.
    numbers = (tl.arange(0, SIDE) + 1)[None, :]
    key = (found.to(tl.int32, bitcast=True) & (-2 * SIDE)) | numbers
    key = tl.where(hit & (found >= least), key, -2147483648)
    best = tl.max(key, 1)
    while tl.max(best, 0) > -2147483648:
        here = best > -2147483648
        spot = tl.atomic_add(counter + tl.zeros((SIDE,), dtype=tl.int32), 1, mask=here, sem="relaxed")
        column = tile_column * SIDE + (best & (2 * SIDE - 1)) - 1
        kept = here & (spot < capacity)
        tl.store(pairs + spot, (rows.to(tl.int64) << 32) | column.to(tl.int64), mask=kept)
        tl.store(values + spot, (best & (-2 * SIDE)).to(tl.float32, bitcast=True), mask=kept)
        key = tl.where(key == best[:, None], -2147483648, key)
        best = tl.max(key, 1)


@triton.jit  # type: ignore[untyped-decorator]
def _compare(  # type: ignore[no-untyped-def]
    query, item, value, there, low, high, before, near, counter, slots, capacity,
    SLOTS: tl.constexpr, PIECE: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Count in ``before`` what reaches the upper bounds of a query; put together what lies between two bounds."""
    one = tl.full((PIECE,), 1, dtype=tl.int32)
    for slot in range(slots):
        place = query * SLOTS + slot
        bound = tl.load(high + place, mask=there, other=float("inf"))
        least = tl.load(low + place, mask=there, other=float("inf"))
        if COUNT:
            tl.atomic_add(before + place, one, mask=there & (value >= bound), sem="relaxed")
        close = there & (value >= least) & (value < bound)
        spot = tl.atomic_add(counter + tl.zeros((PIECE,), dtype=tl.int32), 1, mask=close, sem="relaxed")
        kept = close & (spot < capacity)
        tl.store(near + spot * 3, query.to(tl.int32), mask=kept)
        tl.store(near + spot * 3 + 1, item.to(tl.int32), mask=kept)
        tl.store(near + spot * 3 + 2, tl.zeros((PIECE,), dtype=tl.int32) + slot, mask=kept)


@triton.jit  # type: ignore[untyped-decorator]
def _judge(  # type: ignore[no-untyped-def]
    pairs, values, low, high, before, near, counter, slots, total, capacity,
    SLOTS: tl.constexpr, PIECE: tl.constexpr, BOTH: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0) * PIECE + tl.arange(0, PIECE)
    there = number < total
    pair = tl.load(pairs + number, mask=there, other=0)
    value = tl.load(values + number, mask=there, other=float("-inf"))
    row, column = pair >> 32, pair & 0xFFFFFFFF
    _compare(row, column, value, there, low, high, before, near, counter, slots, capacity, SLOTS, PIECE, COUNT)
    if BOTH:
        _compare(column, row, value, there, low, high, before, near, counter, slots, capacity, SLOTS, PIECE, COUNT)


class Asked(NamedTuple):
    """Who is compared with whom: vectors of ``queries`` (q, d) and ``gallery`` (m, d) in 16 bits, and where the class of
    each query begins and ends in the gallery, ``start`` and ``end`` (q,). ``both``: queries and gallery are the same, and
    each pair serves both. ``side``: rows and columns of a tile.
    """

    queries: Tensor
    gallery: Tensor
    start: Tensor
    end: Tensor
    both: bool
    side: int = TILE

    @property
    def wide(self) -> int:
        """Tiles in a row of tiles."""
        return int(triton.cdiv(len(self.gallery), self.side))

    @property
    def constants(self) -> dict[str, Any]:
        """What programs of a tile are compiled for."""
        return {
            "DIM": self.queries.shape[1], "SIDE": self.side, "STEP": STRETCH, "GROUP": GROUP,
            "num_warps": WARPS if self.side == TILE else 4, "num_stages": STAGES,
        }  # fmt: skip


def count(asked: Asked, high: Tensor, before: Tensor, slots: Tensor) -> None:
    """Add to ``before`` (q, s) how many columns reach ``high`` (q, s); ``slots`` (t,): up to which slot the queries of each
    tile have bounds that matter."""
    tall = len(slots)
    with torch.cuda.device_of(asked.queries):
        _count[(asked.wide * tall,)](
            asked.queries, asked.gallery, high, asked.start, asked.end, before, slots, tall, asked.wide,
            len(asked.queries), len(asked.gallery), SLOTS=high.shape[1], **asked.constants,
        )  # fmt: skip


def find(asked: Asked, floor: Tensor, pairs: Tensor, values: Tensor, counter: Tensor, tiles: range) -> None:
    """Put the pairs of some rows of tiles whose similarity reaches the ``floor`` (q,) of a query into ``pairs`` (c,), row
    and column in its upper and lower half, and ``values`` (c,), which are cut off (``CUT``); ``counter`` (1,) says how many
    there were, fitted or not."""
    with torch.cuda.device_of(asked.queries):
        _find[(asked.wide * len(tiles),)](
            asked.queries, asked.gallery, floor, asked.start, asked.end, pairs, values, counter, tiles.start, len(tiles),
            asked.wide, len(asked.queries), len(asked.gallery), len(pairs), BOTH=asked.both, **asked.constants,
        )  # fmt: skip


def judge(
    pairs: Tensor, values: Tensor, low: Tensor, high: Tensor, before: Tensor, near: Tensor, counter: Tensor,
    slots: int, *, both: bool, count: bool,
) -> None:  # fmt: skip
    """Compare pairs as of ``find`` with the bounds ``low`` and ``high`` (q, s) of their queries: with ``count`` add to
    ``before`` (q, s) what reaches ``high``, and put what lies between both into ``near`` (c, 3) as query, column and slot;
    ``counter`` (1,) says how many those were, fitted or not."""
    if not len(pairs):
        return
    with torch.cuda.device_of(pairs):
        _judge[(triton.cdiv(len(pairs), PIECE),)](
            pairs, values, low, high, before, near, counter, slots, len(pairs), len(near),
            SLOTS=low.shape[1], PIECE=PIECE, BOTH=both, COUNT=count, num_warps=4,
        )  # fmt: skip

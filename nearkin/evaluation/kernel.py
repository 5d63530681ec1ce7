"""The screening of pairs on a GPU: a matrix product whose entries are counted where they arise and never written.

Every tile of similarities serves its rows and, where everybody asks everybody, its columns. Counts are whole numbers, so
that the order in which tiles add to them changes nothing; pairs too close to tell come in any order, and are counted too.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

TILE = 128
STRETCH = 64


@triton.jit  # type: ignore[untyped-decorator]
def _tell(  # type: ignore[no-untyped-def]
    found,
    asking,
    there,
    others,
    slots,
    low,
    high,
    before,
    pairs,
    counter,
    capacity,
    AXIS: tl.constexpr,
    SLOTS: tl.constexpr,
    SIDE: tl.constexpr,
    COUNT: tl.constexpr,
    COLLECT: tl.constexpr,
):
    """Compare a tile with the bounds of its rows (AXIS 1) or of its columns (AXIS 0), who are asking.

    Most bounds lie above everything in a tile, and are passed over at the price of one comparison for each who asks.
    """
    top = tl.max(found, AXIS)
    for slot in range(slots):
        place = asking.to(tl.int64) * SLOTS + slot
        least = tl.load(low + place, mask=there, other=float("inf"))
        if tl.max((top >= least).to(tl.int32), 0) > 0:
            bounds = tl.expand_dims(tl.load(high + place, mask=there, other=float("inf")), AXIS)
            above = tl.sum((found >= bounds).to(tl.int32), AXIS)
            if COUNT:
                tl.atomic_add(before + place, above, mask=there & (above > 0))
            if COLLECT:
                leasts = tl.expand_dims(least, AXIS)
                reach = tl.sum((found >= leasts).to(tl.int32), AXIS)
                if tl.max(reach - above, 0) > 0:
                    close = (found >= leasts) & (found < bounds)
                    spot = tl.atomic_add(counter + tl.zeros((SIDE, SIDE), dtype=tl.int32), 1, mask=close)
                    kept = close & (spot < capacity)
                    target = pairs + spot.to(tl.int64) * 3
                    tl.store(target, tl.broadcast_to(tl.expand_dims(asking, AXIS), (SIDE, SIDE)), mask=kept)
                    tl.store(target + 1, tl.broadcast_to(tl.expand_dims(others, 1 - AXIS), (SIDE, SIDE)), mask=kept)
                    tl.store(target + 2, tl.zeros((SIDE, SIDE), dtype=tl.int32) + slot, mask=kept)


@triton.jit  # type: ignore[untyped-decorator]
def _screen(  # type: ignore[no-untyped-def]
    queries,
    gallery,
    low,
    high,
    start,
    end,
    before,
    pairs,
    counter,
    number_of_slots,
    first,
    tall,
    wide,
    asking,
    answering,
    capacity,
    SLOTS: tl.constexpr,
    DIM: tl.constexpr,
    SIDE: tl.constexpr,
    STEP: tl.constexpr,
    GROUP: tl.constexpr,
    BOTH: tl.constexpr,
    COUNT: tl.constexpr,
    COLLECT: tl.constexpr,
):
    # A few rows of tiles go through the columns together, so that what one of them reads is still near for the next.
    number = tl.program_id(0)
    group = number // (GROUP * wide)
    height = tl.minimum(tall - group * GROUP, GROUP)
    within = number % (GROUP * wide)
    tile_row = first + group * GROUP + within % height
    tile_column = within // height
    if BOTH and tile_column < tile_row:
        return  # its mirror image does it
    rows = tile_row * SIDE + tl.arange(0, SIDE)
    columns = tile_column * SIDE + tl.arange(0, SIDE)
    steps = tl.arange(0, STEP)
    row_there, column_there = rows < asking, columns < answering
    left = queries + rows[:, None].to(tl.int64) * DIM + steps[None, :]
    right = gallery + columns[None, :].to(tl.int64) * DIM + steps[:, None]
    found = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for begin in range(0, DIM, STEP):
        one = tl.load(left + begin, mask=row_there[:, None], other=0.0)
        other = tl.load(right + begin, mask=column_there[None, :], other=0.0)
        found = tl.dot(one, other, found)
    begins = tl.load(start + rows, mask=row_there, other=0)
    ends = tl.load(end + rows, mask=row_there, other=0)
    # Items of the query's own class are counted by their order, elsewhere.
    outside = (columns[None, :] < begins[:, None]) | (columns[None, :] >= ends[:, None])
    outside = outside & row_there[:, None] & column_there[None, :]
    found = tl.where(outside, found, float("-inf"))
    slots = tl.load(number_of_slots + tile_row)
    _tell(
        found, rows, row_there, columns, slots, low, high, before, pairs, counter, capacity,
        1, SLOTS, SIDE, COUNT, COLLECT,
    )  # fmt: skip
    if BOTH and tile_column > tile_row:
        _tell(
            found,
            columns,
            column_there,
            rows,
            tl.load(number_of_slots + tile_column),
            low,
            high,
            before,
            pairs,
            counter,
            capacity,
            0,
            SLOTS,
            SIDE,
            COUNT,
            COLLECT,
        )


def screen(
    queries: Tensor,
    gallery: Tensor,
    low: Tensor,
    high: Tensor,
    start: Tensor,
    end: Tensor,
    before: Tensor,
    pairs: Tensor,
    counter: Tensor,
    slots: Tensor,
    tiles: range,
    *,
    both: bool,
    count: bool,
    collect: bool,
    side: int = TILE,
) -> None:
    """Add to ``before`` (q, s) how many columns reach ``high`` (q, s), and put those between ``low`` and ``high`` into
    ``pairs`` (c, 3) as query, column and slot; ``counter`` (1,) says how many there were, whether they fitted or not.

    ``tiles``: the tiles of rows to look at, ``side`` rows each; ``slots`` (t,): up to which slot the rows of each tile have
    bounds that matter. ``both``: queries and gallery are the same, and each tile
    above the diagonal serves its columns too.
    """
    if not len(tiles):
        return
    wide = triton.cdiv(len(gallery), side)
    _screen[(wide * len(tiles),)](
        queries,
        gallery,
        low,
        high,
        start,
        end,
        before,
        pairs,
        counter,
        slots,
        tiles.start,
        len(tiles),
        wide,
        len(queries),
        len(gallery),
        len(pairs),
        SLOTS=low.shape[1],
        DIM=queries.shape[1],
        SIDE=side,
        STEP=STRETCH,
        GROUP=8,
        BOTH=both,
        COUNT=count,
        COLLECT=collect,
        num_warps=8 if side == TILE else 4,
    )

"""The screening of pairs on a GPU: a matrix product whose entries are counted where they arise and never written.

Every tile of similarities serves its rows and, where everybody asks everybody, its columns. Counts are whole numbers, so
that the order in which tiles add to them changes nothing. Tiles with pairs too close to tell are noted, and a second
program puts these pairs together: it would make the first one slow, and few tiles need it.
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


@triton.jit  # type: ignore[untyped-decorator]
def _tile(  # type: ignore[no-untyped-def]
    queries, gallery, start, end, tile_row, tile_column, asking, answering,
    DIM: tl.constexpr, SIDE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """The similarities of a tile, -inf for pairs of one class or none; its rows and columns, and which of them exist."""
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
    return tl.where(outside, found, float("-inf")), rows, columns, row_there, column_there


@triton.jit  # type: ignore[untyped-decorator]
def _count(  # type: ignore[no-untyped-def]
    found, asking, there, slots, low, high, before, AXIS: tl.constexpr, SLOTS: tl.constexpr, COUNT: tl.constexpr
):
    """Count what reaches the bounds of a tile's rows (AXIS 1) or columns (AXIS 0), who are asking; more than 0 if anything
    lies between two bounds.

    Most bounds lie above everything in a tile, and are passed over at the price of one comparison for each who asks.
    """
    top = tl.max(found, AXIS)
    near = 0
    for slot in range(slots):
        place = asking.to(tl.int64) * SLOTS + slot
        least = tl.load(low + place, mask=there, other=float("inf"))
        if tl.max((top >= least).to(tl.int32), 0) > 0:
            bound = tl.load(high + place, mask=there, other=float("inf"))
            above = tl.sum((found >= tl.expand_dims(bound, AXIS)).to(tl.int32), AXIS)
            reach = tl.sum((found >= tl.expand_dims(least, AXIS)).to(tl.int32), AXIS)
            near = tl.maximum(near, tl.max(reach - above, 0))
            if COUNT:
                tl.atomic_add(before + place, above, mask=there & (above > 0))
    return near


@triton.jit  # type: ignore[untyped-decorator]
def _screen(  # type: ignore[no-untyped-def]
    queries, gallery, low, high, start, end, before, noted, counter, number_of_slots, first, tall, wide, asking, answering,
    SLOTS: tl.constexpr, DIM: tl.constexpr, SIDE: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr,
    BOTH: tl.constexpr, COUNT: tl.constexpr, NOTE: tl.constexpr,
):  # fmt: skip
    # A few rows of tiles go through the columns together, so that what one of them reads is still near for the next.
    number = tl.program_id(0)
    group = number // (GROUP * wide)
    height = tl.minimum(tall - group * GROUP, GROUP)
    within = number % (GROUP * wide)
    tile_row = first + group * GROUP + within % height
    tile_column = within // height
    if BOTH and tile_column < tile_row:
        return  # its mirror image does it
    found, rows, columns, row_there, column_there = _tile(
        queries, gallery, start, end, tile_row, tile_column, asking, answering, DIM, SIDE, STEP
    )
    near = _count(found, rows, row_there, tl.load(number_of_slots + tile_row), low, high, before, 1, SLOTS, COUNT)
    if BOTH and tile_column > tile_row:
        slots = tl.load(number_of_slots + tile_column)
        near = tl.maximum(near, _count(found, columns, column_there, slots, low, high, before, 0, SLOTS, COUNT))
    if NOTE and near > 0:
        spot = tl.atomic_add(counter, 1)
        tl.store(noted + 2 * spot, tile_row)
        tl.store(noted + 2 * spot + 1, tile_column)


@triton.jit  # type: ignore[untyped-decorator]
def _put(  # type: ignore[no-untyped-def]
    found, asking, there, others, slots, low, high, pairs, counter, capacity,
    AXIS: tl.constexpr, SLOTS: tl.constexpr, SIDE: tl.constexpr,
):  # fmt: skip
    """Put together the pairs of a tile that lie between the bounds of its rows (AXIS 1) or columns (AXIS 0)."""
    for slot in range(slots):
        place = asking.to(tl.int64) * SLOTS + slot
        least = tl.expand_dims(tl.load(low + place, mask=there, other=float("inf")), AXIS)
        bound = tl.expand_dims(tl.load(high + place, mask=there, other=float("inf")), AXIS)
        close = (found >= least) & (found < bound)
        if tl.max(tl.max(close.to(tl.int32), 1), 0) > 0:
            spot = tl.atomic_add(counter + tl.zeros((SIDE, SIDE), dtype=tl.int32), 1, mask=close)
            kept = close & (spot < capacity)
            target = pairs + spot * 3
            tl.store(target, tl.broadcast_to(tl.expand_dims(asking, AXIS), (SIDE, SIDE)), mask=kept)
            tl.store(target + 1, tl.broadcast_to(tl.expand_dims(others, 1 - AXIS), (SIDE, SIDE)), mask=kept)
            tl.store(target + 2, tl.zeros((SIDE, SIDE), dtype=tl.int32) + slot, mask=kept)


@triton.jit  # type: ignore[untyped-decorator]
def _collect(  # type: ignore[no-untyped-def]
    queries, gallery, low, high, start, end, noted, pairs, counter, number_of_slots, asking, answering, capacity,
    SLOTS: tl.constexpr, DIM: tl.constexpr, SIDE: tl.constexpr, STEP: tl.constexpr, BOTH: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0)
    tile_row, tile_column = tl.load(noted + 2 * number), tl.load(noted + 2 * number + 1)
    found, rows, columns, row_there, column_there = _tile(
        queries, gallery, start, end, tile_row, tile_column, asking, answering, DIM, SIDE, STEP
    )
    slots = tl.load(number_of_slots + tile_row)
    _put(found, rows, row_there, columns, slots, low, high, pairs, counter, capacity, 1, SLOTS, SIDE)
    if BOTH and tile_column > tile_row:
        slots = tl.load(number_of_slots + tile_column)
        _put(found, columns, column_there, rows, slots, low, high, pairs, counter, capacity, 0, SLOTS, SIDE)


class Asked(NamedTuple):
    """Who is compared with whom: vectors of ``queries`` (q, d) and ``gallery`` (m, d) in 16 bits; for each query the bounds
    ``low`` and ``high`` (q, s) of its positives, and where its class begins and ends in the gallery, ``start`` and ``end``.
    ``slots`` (t,): up to which slot the queries of each tile have bounds that matter. ``both``: queries and gallery are the
    same, and each tile above the diagonal serves its columns too. ``side``: rows and columns of a tile.
    """

    queries: Tensor
    gallery: Tensor
    low: Tensor
    high: Tensor
    start: Tensor
    end: Tensor
    slots: Tensor
    both: bool
    side: int = TILE

    @property
    def constants(self) -> dict[str, Any]:
        """What programs are compiled for."""
        return {
            "SLOTS": self.low.shape[1], "DIM": self.queries.shape[1], "SIDE": self.side, "STEP": STRETCH,
            "BOTH": self.both, "num_warps": 8 if self.side == TILE else 4,
        }  # fmt: skip


def screen(asked: Asked, before: Tensor, noted: Tensor | None, counter: Tensor, tiles: range, *, count: bool) -> None:
    """Add to ``before`` (q, s), with ``count``, how many columns reach ``high``, and note in ``noted`` (c, 2) the tiles that
    hold anything between ``low`` and ``high``; ``counter`` (1,) says how many. There must be room for all of them.

    ``tiles``: the tiles of rows to look at.
    """
    if not len(tiles):
        return
    wide = triton.cdiv(len(asked.gallery), asked.side)
    with torch.cuda.device_of(asked.queries):
        _screen[(wide * len(tiles),)](
            *asked[:6], before, before if noted is None else noted, counter, asked.slots,
            tiles.start, len(tiles), wide, len(asked.queries), len(asked.gallery),
            GROUP=GROUP, COUNT=count, NOTE=noted is not None, **asked.constants,
        )  # fmt: skip


def collect(asked: Asked, noted: Tensor, pairs: Tensor, counter: Tensor) -> None:
    """Put what lies between ``low`` and ``high`` in the ``noted`` tiles (t, 2) into ``pairs`` (c, 3) as query, column and
    slot; ``counter`` (1,) says how many there were, whether they fitted or not."""
    if not len(noted):
        return
    with torch.cuda.device_of(asked.queries):
        _collect[(len(noted),)](
            *asked[:6],
            noted,
            pairs,
            counter,
            asked.slots,
            len(asked.queries),
            len(asked.gallery),
            len(pairs),
            **asked.constants,
        )

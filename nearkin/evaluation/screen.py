"""Places of relevant items on a GPU: 16-bit products sort out what is clear, what is too close to tell is scored again.

A 16-bit product is off by no more than the roundings of its two vectors, whose lengths are known. So each relevant item
gets two bounds: items above both come before it, items below both do not, and those between are scored by the rule
(``similarity``). Measures look at a few places only: of items that a sample of the gallery shows to be deeper than that,
being deep is all that need be known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin import kernels
from nearkin.evaluation.layout import Layout
from nearkin.evaluation.positives import Positives
from nearkin.evaluation.precede import Order
from nearkin.evaluation.similarity import PIECE, ROUNDING, STEPS, Directions, pair_steps

# The dimension is filled up with zeros to a multiple of this.
MULTIPLE = 64
# Every so many columns are looked at first, to tell who is deep.
SAMPLE = 16
# Vectors below which counting in the usual way takes no time worth saving.
ENOUGH = 20_000
# Rows of tiles between two looks at how many pairs were found, at first and at most.
SLAB, SLAB_MOST = 16, 256
BYTES_OF_A_PAIR = 12
# Pairs for which there is room, however little memory may be used.
LEAST = 1024
# Beyond so many of a slab, and one in so many of all its pairs, too many matter or are too close to tell: whole rows cost
# less.
PLENTY, CROWDED = 2**22, 64


class CrowdedError(Exception):
    """Too many pairs are too close to tell for scoring them one by one, as where all vectors are nearly one."""


def worthwhile(rows: Layout) -> bool:
    """Whether there is a device that can be asked in this way, and enough to ask."""
    return rows.gallery.is_cuda and len(rows.gallery) >= ENOUGH and kernels.usable()


@dataclass(frozen=True)
class Narrow:
    """Unit vectors in float16, filled up with zeros, and how far each lies from the true one.

    float16 is as fast as bfloat16 and has three bits more, while its short range does no harm to coordinates of unit
    vectors: what is lost is in ``off``.
    """

    vectors: Tensor
    off: Tensor


def narrow(vectors: Directions, rows: Tensor) -> Narrow:
    wide = -(-vectors.dim // MULTIPLE) * MULTIPLE
    found = torch.zeros(len(rows), wide, dtype=torch.float16, device=rows.device)
    off = torch.empty(len(rows), dtype=torch.float64, device=rows.device)
    piece = max(1, PIECE // wide)
    for begin in range(0, len(rows), piece):
        part = slice(begin, begin + piece)
        exact = vectors.fine(rows[part])
        short = exact.half()
        found[part, : vectors.dim] = short
        off[part] = torch.linalg.vector_norm(exact - short, dim=1)
    return Narrow(found, off)


@dataclass(frozen=True)
class Screened:
    """``places`` (p,): exact down to the depth that was asked for; ``again``: how many pairs were scored again."""

    places: Tensor
    again: int


def screened(
    vectors: Directions, rows: Layout, found: Positives, depth: Tensor, memory: int, side: int = 0
) -> Screened:
    """The place, from 1, of each positive, exact where it is at most ``depth`` (p,); ``side``: of a tile.

    ``CrowdedError`` is raised where counting in the usual way costs less.
    """
    with torch.no_grad(), torch.autocast(found.steps.device.type, enabled=False):
        return _Screen(vectors, rows, found, depth, memory, side).run()


class _Screen:
    def __init__(
        self, vectors: Directions, rows: Layout, found: Positives, depth: Tensor, memory: int, side: int
    ) -> None:
        from nearkin.evaluation import kernel

        self.kernel = kernel
        self.vectors, self.rows, self.found = vectors, rows, found
        self.order = Order(vectors, found)
        device = found.steps.device
        self.first = found.count.cumsum(0) - found.count
        column = torch.arange(max(1, int(found.count.max())), device=device)
        self.slot = torch.where(column < found.count[:, None], self.first[:, None] + column, -1)
        filled = self.slot >= 0
        self.depth = depth[self.slot.clamp(min=0)].masked_fill(~filled, 0)
        self.gallery = narrow(vectors, rows.gallery)
        self.queries = self.gallery if rows.symmetric else narrow(vectors, rows.queries)
        margin = self.queries.off + (1 + self.queries.off) * self.gallery.off.max()
        # Sums of tensor cores are cut off rather than rounded; bounds are rounded when they are compared.
        margin += 4 * (self.gallery.vectors.shape[1] + 12) * ROUNDING + 4 * ROUNDING
        margin += (1 + margin) * kernel.CUT
        similarity = (found.steps[self.slot.clamp(min=0)].double() / STEPS).masked_fill_(~filled, math.inf)
        self.low, self.high = ((similarity + sign * margin[:, None]).float().contiguous() for sign in (-1, 1))
        everybody = self.queries.vectors, self.gallery.vectors, rows.start.int(), rows.end.int()
        self.asked = kernel.Asked(*everybody, rows.symmetric, side or kernel.TILE)
        self.before = torch.zeros(self.slot.shape, dtype=torch.int32, device=device)
        room = max(LEAST, min(memory // (4 * BYTES_OF_A_PAIR), 2**28))
        self.pairs = torch.empty(room, dtype=torch.int64, device=device)
        self.values = torch.empty(room, device=device)
        self.near = torch.empty(room, 3, dtype=torch.int32, device=device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self.again = 0

    def run(self) -> Screened:
        seen = self._seen()
        # What was seen already may show that a positive is deeper than matters: nothing of it is counted any more.
        shown = seen >= self.depth
        self.before = torch.where(shown, seen, self.before)
        self.low, self.high = (bound.masked_fill(shown, math.inf) for bound in (self.low, self.high))
        self._walk()
        filled = self.slot >= 0
        before = torch.empty_like(self.found.steps)
        before[self.slot[filled]] = self.before[filled].long()
        # Positives are in order, so the number of a positive among them is how many of them come before, and 1.
        place = before + torch.arange(1, len(before) + 1, device=before.device) - self.first[self.found.query]
        return Screened(self._rising(place), self.again)

    def _rising(self, place: Tensor) -> Tensor:
        """Places that rise within each query; those of deep positives are lower bounds, and may have to be raised."""
        number = torch.arange(len(place), device=place.device) - self.first[self.found.query]
        shift = self.found.query * (len(self.rows.gallery) + len(self.slot[0]) + 2)
        return (place - number + shift).cummax(0).values + number - shift

    def _last(self) -> Tensor:
        """(q,): up to which slot each query has a bound that anything could reach."""
        column = torch.arange(1, self.low.shape[1] + 1, device=self.low.device, dtype=torch.int32)
        return torch.where(torch.isfinite(self.low), column, 0).amax(1)

    def _seen(self) -> Tensor:
        """(q, s): how many of a sample of the columns surely come before each positive."""
        every = len(self.rows.gallery)
        chosen = torch.arange(SAMPLE // 2, every, SAMPLE, device=self.slot.device)
        if len(chosen) < 4 * SAMPLE:
            return torch.full_like(self.before, -1)
        seen = torch.zeros_like(self.before)
        # The class of a query stands among the sampled columns too.
        start, end = (torch.searchsorted(chosen, edge.long()).int() for edge in (self.asked.start, self.asked.end))
        asked = self.asked._replace(gallery=self.gallery.vectors[chosen], start=start, end=end)
        last = torch.nn.functional.pad(self._last(), (0, self._tiles * asked.side - len(seen)))
        self.kernel.count(asked, self.high, seen, last.view(self._tiles, asked.side).amax(1))
        return seen

    @property
    def _tiles(self) -> int:
        return -(-len(self.slot) // self.asked.side)

    def _walk(self) -> None:
        """Go through all tiles, as many rows of them at a time as there is room for what is found there."""
        self.slots = int(self._last().max())
        floor = self.low.amin(1)
        begin, height = 0, SLAB
        while begin < self._tiles:
            tiles = range(begin, min(begin + height, self._tiles))
            self.counter.zero_()
            self.kernel.find(self.asked, floor, self.pairs, self.values, self.counter, tiles)
            total = int(self.counter)
            self._not_crowded(total, tiles)
            if total > len(self.pairs):
                height = max(1, len(tiles) // 2)
                if len(tiles) == 1:
                    self.pairs, self.values = self.pairs.new_empty(total), self.values.new_empty(total)
                continue
            self._judge(self.pairs[:total], self.values[:total], tiles)
            begin = tiles.stop
            if 4 * total < len(self.pairs):
                height = min(2 * height, SLAB_MOST)

    def _not_crowded(self, total: int, tiles: range) -> None:
        entries = len(tiles) * self.asked.side * len(self.rows.gallery)
        if total > max(PLENTY, entries // CROWDED):
            raise CrowdedError

    def _judge(self, pairs: Tensor, values: Tensor, tiles: range, count: bool = True) -> None:
        """Count pairs that are clear, and score again what is too close to tell; what does not fit, by halves."""
        self.counter.zero_()
        self.kernel.judge(
            pairs, values, self.low, self.high, self.before, self.near, self.counter, self.slots,
            both=self.asked.both, count=count,
        )  # fmt: skip
        total = int(self.counter)
        self._not_crowded(total, tiles)
        if total <= len(self.near):
            self._settle(self.near[:total])
        elif len(pairs) > 1:
            for part in (slice(None, len(pairs) // 2), slice(len(pairs) // 2, None)):
                self._judge(pairs[part], values[part], tiles, count=False)
        else:
            self.near = self.near.new_empty(total, 3)
            self._judge(pairs, values, tiles, count=False)

    def _settle(self, pairs: Tensor) -> None:
        """Score pairs by the rule and count those that come before."""
        self.again += len(pairs)
        for part in torch.split(pairs, PIECE):
            row, column, slot = part.long().unbind(1)
            item = self.rows.gallery[column]
            steps = pair_steps(self.vectors, self.rows.queries[row], self.vectors, item)
            before = self.order.precedes(steps, item, self.slot[row, slot])
            place = row * self.slot.shape[1] + slot
            self.before.view(-1).index_add_(0, place, before.int())

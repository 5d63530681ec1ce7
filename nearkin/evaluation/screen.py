"""Places of relevant items on a GPU: 16-bit products sort out what is clear, what is too close to tell is scored again.

A 16-bit product is off by no more than the roundings of its two vectors, whose lengths are known. So each relevant item
gets two bounds: items above both come before it, items below both do not, and those between are scored by the rule
(``similarity``). Many lie between where a relevant item stands deep in the ranking; but measures look at a few places
only. Items deeper than that are recognised by a sample of the gallery, and for them being deep is all that is shown.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nearkin.evaluation.layout import Layout
from nearkin.evaluation.positives import Positives
from nearkin.evaluation.precede import Order
from nearkin.evaluation.similarity import PIECE, ROUNDING, STEPS, Directions, pair_steps

if TYPE_CHECKING:
    from nearkin.evaluation.kernel import Asked

# The dimension is filled up with zeros to a multiple of this.
MULTIPLE = 64
# Every so many columns are looked at first, to tell who is deep.
SAMPLE = 16
# Those who seem this many times deeper than matters, and some, are deep.
DEEP, SOME = 8, 8
# Vectors below which counting in the usual way takes no time worth saving.
ENOUGH = 100_000
# Rows of tiles between two looks at how many pairs were found.
SLAB = 128
BYTES_OF_A_PAIR = 12
# Pairs for which there is room, however little memory may be used.
LEAST = 1024
# Beyond so many of a slab, and one in so many of all its pairs, too many are too close to tell: whole rows cost less.
PLENTY, CROWDED = 2**22, 64


class CrowdedError(Exception):
    """Too many pairs are too close to tell for scoring them one by one, as where all vectors are nearly one."""


def worthwhile(rows: Layout) -> bool:
    """Whether there is a device that can be asked in this way, and enough to ask."""
    there = rows.gallery.is_cuda and importlib.util.find_spec("triton") is not None
    return there and len(rows.gallery) >= ENOUGH


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

        self.kernel, self.side = kernel, side or kernel.TILE
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
        similarity = (found.steps[self.slot.clamp(min=0)].double() / STEPS).masked_fill_(~filled, math.inf)
        self.low, self.high = ((similarity + sign * margin[:, None]).float().contiguous() for sign in (-1, 1))
        self.start, self.end = rows.start.int(), rows.end.int()
        self.before = torch.zeros(self.slot.shape, dtype=torch.int32, device=device)
        room = max(LEAST, min(memory // (4 * BYTES_OF_A_PAIR), 2**28))
        self.pairs = torch.empty(room, 3, dtype=torch.int32, device=device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        wide = -(-len(rows.gallery) // self.side)
        self.noted = torch.empty(min(SLAB, self._tiles) * wide, 2, dtype=torch.int32, device=device)
        self.again = 0

    def run(self) -> Screened:
        self.slots = self._slots()
        seen = self._seen()
        # What was seen already may show that a positive is deeper than matters: nothing of it is counted any more.
        shown = seen >= self.depth
        self.before = torch.where(shown, seen, self.before)
        self.low, self.high = (bound.masked_fill(shown, math.inf) for bound in (self.low, self.high))
        # A positive that seems deep has no pairs that are too close to tell.
        deep = ~shown & (seen > DEEP * self.depth / SAMPLE + SOME)
        bounds = self.low
        self.low = torch.where(deep, self.high, bounds)
        self._walk(count=True)
        missed = deep & (self.before < self.depth)
        if bool(missed.any()):
            self.low = torch.where(missed, bounds, self.high)
            self._walk(count=False)
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

    def _slots(self) -> Tensor:
        """(t,): up to which slot the queries of each tile of rows have a bound that anything could reach."""
        column = torch.arange(1, self.low.shape[1] + 1, device=self.low.device, dtype=torch.int32)
        last = torch.where(torch.isfinite(self.low), column, 0).amax(1)
        last = torch.nn.functional.pad(last, (0, self._tiles * self.side - len(last)))
        return last.view(self._tiles, self.side).amax(1)

    def _asked(self, **others: Any) -> Asked:
        """Everybody with the bounds as they are now."""
        everybody = self.kernel.Asked(
            self.queries.vectors, self.gallery.vectors, self.low, self.high, self.start, self.end, self.slots,
            self.rows.symmetric, self.side,
        )  # fmt: skip
        return everybody._replace(**others)

    def _seen(self) -> Tensor:
        """(q, s): how many of a sample of the columns surely come before each positive."""
        every = len(self.rows.gallery)
        chosen = torch.arange(SAMPLE // 2, every, SAMPLE, device=self.slot.device)
        if len(chosen) < 4 * SAMPLE:
            return torch.full_like(self.before, -1)
        seen = torch.zeros_like(self.before)
        # The class of a query stands among the sampled columns too.
        start, end = (torch.searchsorted(chosen, edge.long()).int() for edge in (self.start, self.end))
        asked = self._asked(gallery=self.gallery.vectors[chosen], low=self.high, start=start, end=end, both=False)
        self.kernel.screen(asked, seen, None, self.counter, range(self._tiles), count=True)
        return seen

    @property
    def _tiles(self) -> int:
        return -(-len(self.slot) // self.side)

    def _walk(self, *, count: bool) -> None:
        """Go through all tiles, some rows of them at a time."""
        self.slots = self._slots()
        for begin in range(0, self._tiles, SLAB):
            self._slab(range(begin, min(begin + SLAB, self._tiles)), count)

    def _slab(self, tiles: range, count: bool) -> None:
        """Count, and score again what is too close to tell."""
        self.counter.zero_()
        self.kernel.screen(self._asked(), self.before, self.noted, self.counter, tiles, count=count)
        self._collect(self.noted[: int(self.counter)], len(tiles) * self.side * len(self.rows.gallery))

    def _collect(self, noted: Tensor, entries: int) -> None:
        """Put the pairs of these tiles, of a slab with so many entries, together and settle them; what does not fit, by
        halves."""
        self.counter.zero_()
        self.kernel.collect(self._asked(), noted, self.pairs, self.counter)
        total = int(self.counter)
        if total > max(PLENTY, entries // CROWDED):
            raise CrowdedError
        if total <= len(self.pairs):
            self._settle(self.pairs[:total])
        elif len(noted) > 1:
            self._collect(noted[: len(noted) // 2], entries)
            self._collect(noted[len(noted) // 2 :], entries)
        else:
            self.pairs = self.pairs.new_empty(total, 3)
            self._collect(noted, entries)

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

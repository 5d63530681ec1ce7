"""The place of every relevant item in the ranking of its query, without a ranking.

A place is one more than the number of items that come before. So items are counted, not sorted: a fast float32
product of a block of queries and a block of the gallery, a comparison with the similarity of each relevant item, and
a sum. Items whose float32 similarity is too close to tell are scored again by the rule (``similarity``), so that the
count is exact. Where everybody asks everybody the matrix is symmetric: each block serves its rows and its columns, and
half of the products are never formed.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin.evaluation.layout import Layout
from nearkin.evaluation.positives import Positives
from nearkin.evaluation.precede import Order
from nearkin.evaluation.screen import CrowdedError, screened, worthwhile
from nearkin.evaluation.similarity import STEPS, Directions, block_steps, doubt, pair_steps

# Rows and columns of a block on a CPU: a block of similarities and one of comparisons stay in its cache.
SIDE_CPU = 1024
# Bytes per entry of a block: similarity, comparison, and the rows that are looked at again.
PER_ENTRY = 16
# Where more than one entry in this many is too close to tell, whole rows of float64 products cost less than pairs.
CROWDED = 64


@dataclass
class _Side:
    """One block of rows that ask: for each of them the bounds within which another item is too close to tell.

    ``rows``: their stretch of the layout; ``slot`` (b, r): which positive stands in each column, -1 for none; ``low``,
    ``high`` (b, r); ``before`` (b, r): how many items are known to come before; ``reach``: the stretch of the gallery
    that holds all their classes; ``limit`` (b, r): how many may come before until the place matters no more.
    """

    rows: slice
    slot: Tensor
    low: Tensor
    high: Tensor
    before: Tensor
    reach: tuple[int, int]
    limit: Tensor | None


def places(vectors: Directions, rows: Layout, found: Positives, memory: int, depth: Tensor | None = None) -> Tensor:
    """(p,): the place, from 1, of each positive among all items its query can be answered with.

    ``found`` holds for each query all its positives, or the nearest ones. Places deeper than ``depth`` (p,) need not be
    exact; None: all are.
    """
    if depth is not None and len(found.item) and worthwhile(rows):
        with contextlib.suppress(CrowdedError):
            return screened(vectors, rows, found, depth, memory).places
    with torch.no_grad(), torch.autocast(found.steps.device.type, enabled=False):
        return _Count(vectors, rows, found, memory, depth).run()


class _Count:
    """The blocks that are looked at, the numbers they need, and the buffers they share."""

    def __init__(
        self, vectors: Directions, rows: Layout, found: Positives, memory: int, depth: Tensor | None = None
    ) -> None:
        self.vectors, self.rows, self.found, self.depth = vectors, rows, found, depth
        device = found.steps.device
        self.order = Order(vectors, found)
        side = max(1, math.isqrt(memory // PER_ENTRY))
        self.side = min(side, SIDE_CPU) if device.type == "cpu" else side
        self.margin = doubt(vectors.dim)
        self.first = found.count.cumsum(0) - found.count
        self.gallery = vectors.rough(rows.gallery)
        self.queries = self.gallery if rows.symmetric else vectors.rough(rows.queries)
        most = min(self.side, len(self.queries)) * min(self.side, len(self.gallery))
        self.product, self.above = torch.empty(2, most, device=device)
        self.ones = torch.ones(self.side, device=device)

    def run(self) -> Tensor:
        sides = [self._side(start) for start in range(0, len(self.queries), self.side)]
        for number, side in enumerate(sides):
            for start in range(number * self.side if self.rows.symmetric else 0, len(self.gallery), self.side):
                other = sides[start // self.side] if self.rows.symmetric and start > side.rows.start else None
                self._block(side, slice(start, min(start + self.side, len(self.gallery))), other)
        before = torch.empty_like(self.found.steps)
        for side in sides:
            filled = side.slot >= 0
            before[side.slot[filled]] = side.before[filled]
        # Positives are in order, so the number of a positive among them is how many of them come before, and 1.
        return before + torch.arange(1, len(before) + 1, device=before.device) - self.first[self.found.query]

    def _side(self, start: int) -> _Side:
        rows = slice(start, min(start + self.side, len(self.queries)))
        count = self.found.count[rows]
        column = torch.arange(int(count.max()), device=count.device)
        slot = torch.where(column < count[:, None], self.first[rows, None] + column, -1)
        similarity = (self.found.steps[slot].double() / STEPS).masked_fill_(slot < 0, math.inf)
        reach = int(self.rows.start[rows].min()), int(self.rows.end[rows].max())
        low, high = (similarity - self.margin).float(), (similarity + self.margin).float()
        limit = None if self.depth is None else self.depth[slot] - column - 1
        return _Side(rows, slot, low, high, torch.zeros_like(slot), reach, limit)

    def _block(self, side: _Side, columns: slice, other: _Side | None) -> None:
        asked = side.slot.shape[1] > 0, other is not None and other.slot.shape[1] > 0
        if not any(asked):
            return
        shape = side.rows.stop - side.rows.start, columns.stop - columns.start
        similarity = self.product[: shape[0] * shape[1]].view(shape)
        torch.mm(self.queries[side.rows], self.gallery[columns].T, out=similarity)
        if side.reach[0] < columns.stop and side.reach[1] > columns.start:
            # Relevant items are counted by their order, and the query itself not at all.
            place = torch.arange(columns.start, columns.stop, device=similarity.device)
            start, end = self.rows.start[side.rows, None], self.rows.end[side.rows, None]
            similarity.masked_fill_((place >= start) & (place < end), -math.inf)
        if asked[0]:
            self._compare(side, similarity, columns)
        if other is not None and asked[1]:
            self._compare(other, similarity.T, side.rows)

    def _compare(self, side: _Side, similarity: Tensor, columns: slice) -> None:
        """Count the items of ``columns`` that come before each positive of the rows ``similarity`` (b, c) of side."""
        if side.limit is None:
            self._count(side, torch.arange(len(similarity), device=similarity.device), similarity, columns)
            return
        # One comparison, with the least bound that still matters, passes over most rows.
        reached = self._tally(similarity, side.low.amin(1, keepdim=True))[:, 0] > 0
        row = reached.nonzero().squeeze(1)
        if not len(row):
            return
        if 2 * len(row) > len(reached):
            row, some = torch.arange(len(reached), device=row.device), similarity
        elif similarity.is_contiguous():
            some = similarity[row]
        else:
            some = similarity.T[:, row].T
        self._count(side, row, some, columns)
        late = side.before[row] > side.limit[row]
        side.low[row] = side.low[row].masked_fill_(late, math.inf)
        side.high[row] = side.high[row].masked_fill_(late, math.inf)

    def _count(self, side: _Side, row: Tensor, similarity: Tensor, columns: slice) -> None:
        """The same for some rows of side, ``row`` (h,), whose similarities are given (h, c)."""
        surely, maybe = self._tally(similarity, side.high[row]), self._tally(similarity, side.low[row])
        side.before[row] += surely
        close = maybe - surely
        total = int(close.sum())
        if not total:
            return
        # The numbers of the rows that are looked at again fit beside the block.
        piece = max(1, self.product.numel() // (4 * similarity.shape[1]))
        if total * CROWDED > int(close.any(1).sum()) * similarity.shape[1]:
            for some in torch.split(close.any(1).nonzero().squeeze(1), piece):
                self._settle_rows(side, row[some], similarity[some], columns)
        else:
            for place in torch.split(close.nonzero(), piece):
                some, column = place.unbind(1)
                self._settle_pairs(side, row[some], column, similarity[some], columns)

    def _tally(self, similarity: Tensor, bound: Tensor) -> Tensor:
        """(b, r): how many entries of each row of ``similarity`` (b, c) reach each bound of that row (b, r)."""
        # Ones and zeros in floating point, added by a matrix product, cost a fifth of booleans and their sum.
        flipped = not similarity.is_contiguous()
        above = self.above[: similarity.numel()].view(similarity.T.shape if flipped else similarity.shape)
        above = above.T if flipped else above
        counts = torch.empty(bound.T.shape, device=bound.device)
        for count, limit in zip(counts, bound.T.contiguous()[..., None], strict=True):
            torch.ge(similarity, limit, out=above)
            torch.mv(above, self.ones[: similarity.shape[1]], out=count)
        return counts.T.long()

    def _settle_pairs(self, side: _Side, row: Tensor, column: Tensor, similarity: Tensor, columns: slice) -> None:
        """Score items that are too close to tell one by one; similarities (h, c) are those of the rows ``row`` (h,)."""
        low, high = side.low[row, column, None], side.high[row, column, None]
        which, place = ((similarity >= low) & (similarity < high)).nonzero().T
        row, column, item = row[which], column[which], self.rows.gallery[columns][place]
        steps = pair_steps(self.vectors, self.rows.queries[side.rows][row], self.vectors, item)
        before = self.order.precedes(steps, item, side.slot[row, column])
        side.before.index_put_((row, column), before.long(), accumulate=True)

    def _settle_rows(self, side: _Side, row: Tensor, similarity: Tensor, columns: slice) -> None:
        """Score whole rows, where many items are too close to tell."""
        item = self.rows.gallery[columns]
        asking = self.rows.queries[side.rows][row]
        block = block_steps(self.vectors, asking, self.vectors, item)
        steps, slots = block.steps, side.slot[row]
        near = torch.zeros_like(steps, dtype=torch.bool)
        for slot in slots.T:
            near |= (steps - self.found.steps[slot][:, None]).abs_() <= 1
        some, place = block.unsure(near).T
        steps[some, place] = pair_steps(self.vectors, asking[some], self.vectors, item[place])
        for column in range(side.slot.shape[1]):
            low, high = side.low[row, column, None], side.high[row, column, None]
            before = self.order.precedes(steps, item, side.slot[row, column, None])
            side.before[row, column] += (before & (similarity >= low) & (similarity < high)).sum(1)

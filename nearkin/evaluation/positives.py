"""The relevant items of every query, with their similarity: what the rest of the gallery is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin.evaluation.layout import Layout
from nearkin.evaluation.similarity import NEVER, Directions, block_steps, pair_steps

# Above this many relevant items the nearest one is found by a matrix product, not by scoring each pair.
BY_PAIR = 64


@dataclass(frozen=True)
class Positives:
    """Relevant items, query after query in the order of the layout, nearest first (lower row first on ties).

    ``query`` (p,): place of the query in the layout; ``item`` (p,): row of the item; ``steps`` (p,): similarity;
    ``count`` (q,): how many each query has.
    """

    query: Tensor
    item: Tensor
    steps: Tensor
    count: Tensor


def all_positives(vectors: Directions, rows: Layout, wanted: Tensor) -> Positives:
    """Every relevant item of the queries marked in ``wanted`` (q,)."""
    sizes = torch.where(wanted, rows.end - rows.start, 0)
    query = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    within = torch.arange(len(query), device=sizes.device) - (sizes.cumsum(0) - sizes)[query]
    item = rows.gallery[rows.start[query] + within]
    if rows.own:
        other = item != rows.queries[query]
        query, item = query[other], item[other]
    steps = pair_steps(vectors, rows.queries[query], vectors, item)
    # Items rise within a query; stable sorts keep that order among equal steps.
    order = steps.argsort(descending=True, stable=True)
    order = order[query[order].argsort(stable=True)]
    return Positives(query[order], item[order], steps[order], torch.bincount(query, minlength=len(sizes)))


def nearest_positives(vectors: Directions, rows: Layout, memory: int) -> Positives:
    """The nearest relevant item of each query that has one."""
    sizes = rows.end - rows.start
    small = all_positives(vectors, rows, sizes <= BY_PAIR)
    first = small.count.cumsum(0) - small.count
    first = first[small.count > 0]
    query, item, steps = small.query[first], small.item[first], small.steps[first]
    large = (sizes > BY_PAIR).nonzero().squeeze(1)
    if len(large):
        best, score = _by_product(vectors, rows, large, memory)
        # Classes stand in the order of size, so large ones come last.
        query, item, steps = torch.cat([query, large]), torch.cat([item, best]), torch.cat([steps, score])
    return Positives(query, item, steps, torch.bincount(query, minlength=len(sizes)))


def _by_product(vectors: Directions, rows: Layout, large: Tensor, memory: int) -> tuple[Tensor, Tensor]:
    """Item and steps of the nearest relevant item of the queries ``large``, class by class."""
    items = torch.empty_like(large)
    begin = 0
    starts, sizes = torch.unique_consecutive(rows.start[large], return_counts=True)
    ends = rows.end[large][sizes.cumsum(0) - 1]
    for start, end, size in zip(starts.tolist(), ends.tolist(), sizes.tolist(), strict=True):
        members = rows.gallery[start:end]
        height = max(1, memory // (32 * len(members)))
        for row in range(begin, begin + size, height):
            part = slice(row, min(row + height, begin + size))
            asking = rows.queries[large[part]]
            block = block_steps(vectors, asking, vectors, members)
            steps = block.steps
            if rows.own:
                steps.masked_fill_(asking[:, None] == members, NEVER)
            # Any of those within rounding of the first may be it.
            near = steps >= steps.amax(1, keepdim=True) - 2
            near &= near.sum(1, keepdim=True) > 1
            some, place = block.unsure(near).T
            steps[some, place] = pair_steps(vectors, asking[some], vectors, members[place])
            # The first of equal maxima: members rise.
            items[part] = members[steps.max(1).indices]
        begin += size
    return items, pair_steps(vectors, rows.queries[large], vectors, items)

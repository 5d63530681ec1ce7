"""Exact nearest neighbours by cosine similarity, in blocks, so that memory does not grow with the data."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from nearkin.evaluation.duplicates import Copies, copies
from nearkin.evaluation.inputs import Labels, Vectors, index_tensor, label_tensor, vector_tensor, whole
from nearkin.evaluation.similarity import NEVER, Block, Directions, directions, doubt, from_steps, pair_steps, to_steps

# Working memory in bytes beyond inputs and outputs: enough for matrix products that run at full speed.
MEMORY = 2**28

# Fewer query rows than this make a matrix product slow; a wide gallery is then cut into column blocks.
FEWEST_ROWS = 64

# Items looked at beyond the k asked for: as many as rounding may have put in a wrong place.
SPARE = 32

# Bytes per item while a whole row is ranked: products, steps, and what sorting holds; and per item of a short list.
WHOLE_ROW, SHORT_LIST = 48, 64

# Numbers of the gallery that are turned into float64 at a time.
FLOAT64 = 2**22


def ordered(steps: Tensor, index: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k first of each row by falling step, then rising index.

    >>> ordered(torch.tensor([[5, 9, 5]]), torch.tensor([[8, 4, 2]]), 2)
    (tensor([[9, 5]]), tensor([[4, 2]]))
    """
    index, order = index.sort(dim=1)
    steps, order = steps.gather(1, order).sort(dim=1, descending=True, stable=True)
    return steps[:, :k], index.gather(1, order[:, :k])


def listed(k: int) -> int:
    """How many of the roughly nearest items are scored by the rule to find the k nearest."""
    return k + max(SPARE, k // 4)


def block_shape(columns: int, k: int, memory: int) -> tuple[int, int]:
    """Rows and columns of one similarity block so that it and the ranking of it stay near ``memory`` bytes.

    >>> block_shape(60_502, 10, 2**28)
    (1097, 60502)
    """
    if 3 * listed(k) >= columns:
        return max(1, memory // (columns * WHOLE_ROW)), columns
    short = SHORT_LIST * listed(k)
    if FEWEST_ROWS * (4 * columns + short) > memory:
        columns = min(columns, max(3 * listed(k) + 1, (memory // FEWEST_ROWS - short) // 4))
    return max(1, memory // (4 * columns + short)), columns


def ranked_blocks(
    queries: Directions,
    gallery: Directions,
    k: int,
    *,
    self_index: Tensor | None = None,
    different: tuple[Tensor, Tensor] | None = None,
    scores: bool = True,
    block: tuple[int, int] | None = None,
    memory: int = MEMORY,
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """``neighbours`` one block of queries after the other: (rows, similarity in steps, index).

    What is derived from the ranking block by block never needs the whole (n, k) ranking in memory. Without ``scores``
    the order is as exact, but only items that are close together are scored by the rule.
    """
    m = len(gallery)
    height, width = block or block_shape(m, k, memory)
    # A training loop may evaluate under autocast; half precision would reorder neighbours.
    with torch.no_grad(), torch.autocast(gallery.vectors.device.type, enabled=False):
        twins = copies(gallery.vectors)
        brief = 3 * listed(k) < m
        wholly = height if block else max(1, memory // (m * WHOLE_ROW))
        rough = gallery.rough(slice(None)) if brief else None
        if twins is not None and block is None and not brief:
            height = max(1, height * m // (m + len(twins.first)))
        for start in range(0, len(queries), height):
            rows = slice(start, min(start + height, len(queries)))
            own = None if self_index is None else self_index[rows]
            labels = None if different is None else (different[0][rows], different[1])
            hidden = _Hidden(own, labels)
            if rough is None:
                steps, index = _rank_whole(queries, rows, gallery, k, hidden, twins)
            else:
                steps, index = _rank_brief(queries, rows, gallery, rough, k, hidden, twins, width, wholly, scores)
            if k > m:
                steps = torch.nn.functional.pad(steps, (0, k - m), value=NEVER)
                index = torch.nn.functional.pad(index, (0, k - m), value=-1)
            yield rows, steps, index.masked_fill_(steps == NEVER, -1)


class _Hidden:
    """What each query of a block must not see: itself, and items with its own label."""

    def __init__(self, own: Tensor | None, different: tuple[Tensor, Tensor] | None) -> None:
        self.own, self.different = own, different

    def __getitem__(self, rows: Tensor) -> _Hidden:
        own = None if self.own is None else self.own[rows]
        return _Hidden(own, None if self.different is None else (self.different[0][rows], self.different[1]))

    def write(self, block: Tensor, start: int, value: float) -> None:
        """Write ``value`` over the hidden places of a block whose columns begin at ``start``."""
        if self.own is not None:
            row = ((self.own >= start) & (self.own < start + block.shape[1])).nonzero().squeeze(1)
            block[row, self.own[row] - start] = value
        if self.different is not None:
            columns = self.different[1][start : start + block.shape[1]]
            block.masked_fill_(self.different[0][:, None] == columns, value)


def _rank_whole(
    queries: Directions, rows: slice | Tensor, gallery: Directions, k: int, hidden: _Hidden, twins: Copies | None
) -> tuple[Tensor, Tensor]:
    """Score every item in float64 and sort."""
    asking = queries.fine(rows)
    similarity = asking.new_empty(len(asking), len(gallery))
    width = max(1, FLOAT64 // gallery.dim)
    for start in range(0, len(gallery), width):
        columns = slice(start, min(start + width, len(gallery)))
        similarity[:, columns] = asking @ gallery.fine(columns).T
    if twins is not None:
        shared = asking @ gallery.fine(twins.first).T
        similarity[:, twins.columns] = shared[:, twins.owner]
    block = Block(similarity, gallery.dim)
    hidden.write(block.steps, 0, NEVER)
    steps, index = block.steps.sort(dim=1, descending=True, stable=True)
    # Of items as near each other as rounding reaches, the rule itself says which comes first.
    close = steps[:, :-1] - steps[:, 1:] <= 2
    if bool((close & (steps[:, 1:] != NEVER)).any()):
        near = torch.nn.functional.pad(close, (1, 0)) | torch.nn.functional.pad(close, (0, 1))
        some, place = block.unsure(torch.zeros_like(near).scatter_(1, index, near) & (block.steps != NEVER)).T
        number = torch.arange(len(queries), device=steps.device)[rows]
        block.steps[some, place] = pair_steps(queries, number[some], gallery, place)
        steps, index = block.steps.sort(dim=1, descending=True, stable=True)
    return steps[:, :k], index[:, :k]


def _rank_brief(
    queries: Directions,
    rows: slice,
    gallery: Directions,
    rough: Tensor,
    k: int,
    hidden: _Hidden,
    twins: Copies | None,
    width: int,
    wholly: int,
    scores: bool,
) -> tuple[Tensor, Tensor]:
    """Find somewhat more than the k nearest by fast products, then score and order these by the rule."""
    asking = queries.rough(rows)
    values, index = (
        asking.new_empty(len(asking), 0),
        torch.empty(len(asking), 0, dtype=torch.int64, device=rough.device),
    )
    for start in range(0, len(gallery), width):
        similarity = asking @ rough[start : start + width].T
        hidden.write(similarity, start, -math.inf)
        more, places = similarity.topk(min(listed(k), similarity.shape[1]), dim=1, sorted=False)
        values, index = torch.cat([values, more], 1), torch.cat([index, places + start], 1)
        values, order = values.topk(min(listed(k), values.shape[1]), dim=1)
        index = index.gather(1, order)
    # Values fall; items that stand closer together than rounding reaches may stand in the wrong order.
    gap = 2 * doubt(gallery.dim)
    close = torch.ones_like(values, dtype=torch.bool)
    if not scores:
        near = values[:, :-1] - values[:, 1:] <= gap
        close[:, 1:] = near
        close[:, :-1] |= near
        close[:, 0] = near[:, 0]
    close &= values > -math.inf
    steps = to_steps(values.double()).masked_fill_(values == -math.inf, NEVER)
    row, column = close.nonzero().T
    steps[row, column] = pair_steps(queries, rows.start + row, gallery, index[row, column])
    steps, found = ordered(steps, index, k)
    # An item that is not in the list has at most the list's last value; is that clearly below the k-th?
    unclear = (values[:, -1] >= values[:, k - 1] - gap) & (values[:, -1] > -math.inf)
    part = unclear.nonzero().squeeze(1)
    for some in torch.split(part, wholly):
        steps[some], found[some] = _rank_whole(queries, rows.start + some, gallery, k, hidden[some], twins)
    return steps, found


def neighbours(
    queries: Vectors,
    gallery: Vectors,
    k: int,
    *,
    self_index: Labels | None = None,
    different: tuple[Labels, Labels] | None = None,
    block: tuple[int, int] | None = None,
    memory: int = MEMORY,
) -> tuple[Tensor, Tensor]:
    """The k gallery rows most similar to each query, by cosine: exact, most similar first.

    Rule: item j comes before item l if its similarity is larger, or equal and j < l. Similarity is the cosine in
    float64, rounded to steps of 2**-40, whatever the type of the vectors. The order is the same whatever the blocks and
    the memory; a similarity that is given back may be one step off where that changes no order. Copies of one vector
    have equal similarity. Zero vectors have similarity 0 with everything.

    - ``queries`` (n, d), ``gallery`` (m, d): float32 or float64 on one device (halves become float32);
    - ``self_index`` (n,): the gallery row that is the query itself and is left out, -1 for none;
    - ``different``: (query labels (n,), gallery labels (m,)): only items with another label than the query's;
    - ``block``: query rows and gallery columns of one similarity block; None: what ``memory`` bytes hold.

    Returns similarity (n, k) and index (n, k); places that no item is left for hold -inf and -1.

    >>> points = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> neighbours(points, points, 2, self_index=[0, 1, 2])[1]
    tensor([[1, 2],
            [0, 2],
            [1, 0]])
    """
    k = whole("neighbours", "k", k, 1)
    memory = whole("neighbours", "memory", memory, 1)
    if block is not None:
        block = (
            whole("neighbours", "block rows", block[0], 1),
            whole("neighbours", "block columns", block[1], 1),
        )
    items = vector_tensor("gallery", gallery)
    asking = items if queries is gallery else vector_tensor("queries", queries)
    check_partners(asking, items)
    n, m, device = len(asking), len(items), items.device
    own = None if self_index is None else index_tensor("self_index", self_index, n, m, device)
    labels = None
    if different is not None:
        labels = (
            label_tensor("different[0]", different[0], n, "queries", device),
            label_tensor("different[1]", different[1], m, "gallery", device),
        )
    stored = directions(items)
    similarity = items.new_empty(n, k)
    index = torch.empty(n, k, dtype=torch.int64, device=device)
    for rows, steps, places in ranked_blocks(
        stored if asking is items else directions(asking),
        stored,
        k,
        self_index=own,
        different=labels,
        block=block,
        memory=memory,
    ):
        similarity[rows], index[rows] = from_steps(steps).to(similarity.dtype), places
    return similarity, index


def check_partners(queries: Tensor, gallery: Tensor) -> None:
    """Raise unless queries can be compared with the gallery."""
    for what, one, other in (
        ("dimension", queries.shape[1], gallery.shape[1]),
        ("type", queries.dtype, gallery.dtype),
        ("device", queries.device, gallery.device),
    ):
        if one != other:
            remedy = "embed both with one model" if what == "dimension" else f"give both one {what}"
            raise ValueError(f"queries must have the {what} of gallery ({other}), got {one}; {remedy}.")

"""Exact nearest neighbours by cosine similarity, in blocks, so that memory does not grow with the data."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from nearkin.evaluation.duplicates import Copies, copies
from nearkin.evaluation.inputs import Labels, Vectors, index_tensor, label_tensor, vector_tensor, whole
from nearkin.pairs import unit

# Working memory in bytes beyond inputs and outputs: enough for matrix products that run at full speed.
MEMORY = 2**28

# Fewer query rows than this make a matrix product slow; a wide gallery is then cut into column blocks.
FEWEST_ROWS = 64


def ordered(similarity: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k first of each row by falling value, then rising column: a stable sort does that."""
    values, index = similarity.sort(dim=1, descending=True, stable=True)
    return values[:, :k], index[:, :k]


def best(similarity: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row and their columns; among equal values the lower column comes first.

    >>> best(torch.tensor([[0.5, 0.9, 0.5, 0.5, 0.1, 0.2, 0.3]]), 2)
    (tensor([[0.9000, 0.5000]]), tensor([[1, 0]]))
    """
    if 3 * k >= similarity.shape[1]:
        return ordered(similarity, min(k, similarity.shape[1]))
    # topk is several times faster than sorting but picks and orders equal values at will. One value more than
    # asked for tells whether the choice itself was free; those rows are sorted, rows with inner ties are put
    # in order.
    values, index = similarity.topk(k + 1, dim=1)
    equal = values[:, 1:] == values[:, :-1]
    free = equal[:, -1] & (values[:, -1] > -math.inf)
    inner = equal[:, :-1].any(1).nonzero().squeeze(1)
    values, index = values[:, :k].contiguous(), index[:, :k].contiguous()
    if len(inner):
        by_column, order = index[inner].sort(dim=1)
        by_value, order = values[inner].gather(1, order).sort(dim=1, descending=True, stable=True)
        values[inner], index[inner] = by_value, by_column.gather(1, order)
    if bool(free.any()):
        rows = free.nonzero().squeeze(1)
        values[rows], index[rows] = ordered(similarity[rows], k)
    return values, index


def block_shape(columns: int, k: int, itemsize: int, memory: int) -> tuple[int, int]:
    """Rows and columns of one similarity block so that it and the ranking of it stay near ``memory`` bytes.

    >>> block_shape(60_502, 10, 4, 2**28)
    (1107, 60502)
    """
    ranked = itemsize + 8  # a value and its column
    sorting = 3 * k >= columns
    per_row = columns * (2 * itemsize + 3 * ranked if sorting else itemsize) + 3 * k * ranked
    if not sorting and FEWEST_ROWS * per_row > memory:
        columns = min(columns, max(3 * k + 1, memory // (FEWEST_ROWS * itemsize) - 3 * k * ranked // itemsize))
        per_row = columns * itemsize + 3 * k * ranked
    return max(1, memory // per_row), columns


def ranked_blocks(
    queries: Tensor,
    gallery: Tensor,
    k: int,
    *,
    self_index: Tensor | None = None,
    different: tuple[Tensor, Tensor] | None = None,
    block: tuple[int, int] | None = None,
    memory: int = MEMORY,
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """``neighbours`` of unit vectors, one block of queries after the other: (rows, similarity, index).

    What is derived from the ranking block by block never needs the whole (n, k) ranking in memory.
    """
    m = len(gallery)
    twins = copies(gallery)
    height, width = block or block_shape(m, k, gallery.element_size(), memory)
    if twins is not None and block is None:
        height = max(1, height * width // (width + len(twins.vectors)))
    for start in range(0, len(queries), height):
        rows = slice(start, min(start + height, len(queries)))
        # A training loop may evaluate under autocast; half precision would reorder neighbours.
        with torch.no_grad(), torch.autocast(queries.device.type, enabled=False):
            own = None if self_index is None else self_index[rows]
            labels = None if different is None else (different[0][rows], different[1])
            similarity, index = _rank(queries[rows], gallery, k, own, labels, twins, width)
            index = index.masked_fill_(similarity == -math.inf, -1)
            if k > m:
                similarity = torch.nn.functional.pad(similarity, (0, k - m), value=-math.inf)
                index = torch.nn.functional.pad(index, (0, k - m), value=-1)
        yield rows, similarity, index


def _rank(
    queries: Tensor,
    gallery: Tensor,
    k: int,
    own: Tensor | None,
    different: tuple[Tensor, Tensor] | None,
    twins: Copies | None,
    width: int,
) -> tuple[Tensor, Tensor]:
    """The ranking of one block of queries, put together from column blocks of the gallery."""
    shared = None if twins is None else queries @ twins.vectors.T
    found: tuple[Tensor, Tensor] | None = None
    for start in range(0, len(gallery), width):
        columns = slice(start, start + width)
        similarity = queries @ gallery[columns].T
        if twins is not None and shared is not None:
            twins.rewrite(similarity, shared, start)
        if own is not None:
            row = ((own >= start) & (own < start + similarity.shape[1])).nonzero().squeeze(1)
            similarity[row, own[row] - start] = -math.inf
        if different is not None:
            similarity.masked_fill_(different[0][:, None] == different[1][columns], -math.inf)
        values, index = best(similarity, k)
        index = index + start
        if found is not None:
            # Earlier columns stand first, so that a stable sort keeps the lower index first.
            values, order = ordered(torch.cat([found[0], values], 1), k)
            index = torch.cat([found[1], index], 1).gather(1, order)
        found = values, index
    assert found is not None
    return found


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

    Rule: item j comes before item l if its similarity is larger, or equal and j < l. Copies of one vector
    always have equal similarity, whatever the blocks. Zero vectors have similarity 0 with everything.

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
    scaled = unit(items)
    asking = scaled if asking is items else unit(asking)
    similarity = scaled.new_empty(n, k)
    index = torch.empty(n, k, dtype=torch.int64, device=device)
    for rows, values, places in ranked_blocks(
        asking, scaled, k, self_index=own, different=labels, block=block, memory=memory
    ):
        similarity[rows], index[rows] = values, places
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

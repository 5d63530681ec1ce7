"""Sums and maxima of wide rows in two levels: first of stretches of a row, then of what these gave.

A compiler gives one row to one group of threads, which then walks along it; a block has far fewer rows than a GPU has
threads, so most of it waits. Stretches of rows are enough to keep all of it busy.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

LEAST = 4096
"""Columns from which rows are wide."""
STRETCH = 1024
"""The most columns of a stretch: what a group of threads holds at once."""
FEWEST = 256
"""The fewest columns worth a stretch; where no length between the two divides the row, it is left whole."""

aten = torch.ops.aten
_REDUCTIONS = (aten.sum.dim_IntList, aten.amax.default, aten.amin.default)


def split(traced: fx.GraphModule) -> int:
    """Put two levels in the place of every reduction over wide rows; how many that were."""
    number = 0
    for node in list(traced.graph.nodes):
        if node.op != "call_function" or node.target not in _REDUCTIONS:
            continue
        matrix, dims, *keep = node.args
        shape = _shape(matrix)
        stretch = None if shape is None or [d % 2 for d in dims] != [1] else _stretch(shape[1])
        if shape is None or stretch is None:
            continue
        with traced.graph.inserting_before(node):
            parts = traced.graph.call_function(aten.view.default, (matrix, [shape[0], -1, stretch]))
            first = traced.graph.call_function(node.target, (parts, [2]), dict(node.kwargs))
            second = traced.graph.call_function(node.target, (first, [1], *keep), dict(node.kwargs))
        node.replace_all_uses_with(second)
        traced.graph.erase_node(node)
        number += 1
    traced.recompile()
    return number


def _shape(matrix: Any) -> tuple[int, int] | None:
    """Rows and columns of what is reduced, None if it is no wide matrix that lies in one piece."""
    value = matrix.meta.get("val") if isinstance(matrix, fx.Node) else None
    if not isinstance(value, Tensor) or value.dim() != 2 or value.shape[1] < LEAST or not value.is_contiguous():
        return None
    return value.shape[0], value.shape[1]


def _stretch(columns: int) -> int | None:
    """The longest stretch that divides a row."""
    return next((size for size in range(STRETCH, FEWEST - 1, -1) if columns % size == 0), None)

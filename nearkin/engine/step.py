"""One block: the values of its rows, and the slopes of its inner products and inputs, by plain autograd."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nearkin.engine.plan import Plan, RowFunction
from nearkin.pairs import Mask


class Wanted(NamedTuple):
    """Which slopes are wanted: any at all, of the inner products, of each row input, of each shared input."""

    any: bool
    dot: bool
    row: tuple[bool, ...]
    shared: tuple[bool, ...]


class Answer(NamedTuple):
    """Values and counts of the rows of a block, and slopes of upstream . values; None where unwanted or all zero."""

    values: Tensor
    counts: Tensor | None
    dot: Tensor | None
    row: tuple[Tensor | None, ...]
    shared: tuple[Tensor | None, ...]


class Eager:
    """The row function of a plan under autograd; it may overwrite the inner products it is given."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __call__(
        self, start: int, stop: int, dot: Tensor, upstream: Tensor, wanted: Wanted, sheet: Tensor | None
    ) -> Answer:
        plan = self.plan
        masks = plan.rows(start, stop, dot, sheet)
        row = tuple(x[start:stop] for x in plan.row)
        sizes = plan.sizes._replace(spare=True)
        return differentiate(plan.function, dot, *masks, row, plan.shared, sizes, upstream, wanted)


def differentiate(
    function: RowFunction,
    dot: Tensor,
    positive: Mask,
    negative: Tensor,
    row: tuple[Tensor, ...],
    shared: tuple[Tensor, ...],
    sizes: object,
    upstream: Tensor,
    wanted: Wanted,
) -> Answer:
    """What a row function gives, and the slopes of it that are wanted."""
    leaf = _leaf(dot, wanted.dot)
    rows = tuple(_leaf(x, need) for x, need in zip(row, wanted.row, strict=True))
    whole = tuple(_leaf(x, need) for x, need in zip(shared, wanted.shared, strict=True))
    with torch.set_grad_enabled(wanted.any):
        result = function(leaf, positive, negative, rows, whole, sizes)  # type: ignore[arg-type]
    values, count = result if isinstance(result, tuple) else (result, None)
    leaves = [x for x in (leaf, *rows, *whole) if x.requires_grad]
    slopes: tuple[Tensor | None, ...] = (None,) * len(leaves)
    if leaves and values.requires_grad:
        slopes = torch.autograd.grad(values, leaves, upstream, allow_unused=True)
    found = dict(zip(map(id, leaves), slopes, strict=True))
    return Answer(
        values.detach(),
        None if count is None else count.detach(),
        found.get(id(leaf)),
        tuple(found.get(id(x)) for x in rows),
        tuple(found.get(id(x)) for x in whole),
    )


def _leaf(tensor: Tensor, need: bool) -> Tensor:
    return tensor.detach().requires_grad_(need)

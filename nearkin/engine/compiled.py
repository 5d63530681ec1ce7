"""One block as one compiled step: masks from labels, values, counts and slopes, without a matrix kept between them.

The row function and its gradient are traced together once for each shape, then compiled as one graph; so a block costs the
host one call. What is traced holds the settings of the loss as constants; other settings are traced anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nearkin.engine.plan import Plan
from nearkin.engine.step import Answer, Eager, Wanted, differentiate
from nearkin.masks import whole_rows

# Compiled steps of each loss object; entries go when the object goes.
MOST = 24
"""Steps of one loss; beyond, since shapes seem to change all the time, blocks run without a compiler."""
_STEPS: weakref.WeakKeyDictionary[object, dict[Any, Callable[..., Any]]] = weakref.WeakKeyDictionary()


class _Inputs(NamedTuple):
    """The tensors of a block that a step reads; those that a plan does not have are None."""

    dot: Tensor
    upstream: Tensor
    labels: Tensor | None
    gallery_labels: Tensor | None
    positive: Tensor | None
    negative: Tensor | None
    own: Tensor | None
    valid: Tensor | None
    row: tuple[Tensor, ...]
    shared: tuple[Tensor, ...]


class Compiled:
    """Steps of a plan through ``torch.compile``, kept with the loss that made the plan."""

    def __init__(self, plan: Plan, backend: str) -> None:
        self.plan, self.backend = plan, backend
        owner: Any = plan.function.__self__  # type: ignore[attr-defined]
        self.own = plan.masks.own_columns(plan.source.device) if plan.needs_masks else None
        self.steps = _STEPS.setdefault(owner, {})
        self.facts = (backend, str(owner.settings), plan.function.__name__, plan.sizes, plan.needs_masks, plan.products)

    def __call__(
        self, start: int, stop: int, dot: Tensor, upstream: Tensor, wanted: Wanted, sheet: Tensor | None
    ) -> Answer:
        inputs = self._inputs(start, stop, dot, upstream)
        tensors = [x for x in (*inputs[:8], *inputs.row, *inputs.shared) if x is not None]
        shapes = tuple((x.shape, x.dtype, x.device) for x in tensors)
        absent = tuple(x is None for x in inputs[:8])
        key = (self.facts, wanted, absent, shapes)
        if key not in self.steps:
            if len(self.steps) >= MOST:
                return Eager(self.plan)(start, stop, dot, upstream, wanted, None)
            self.steps[key] = _compile(self.plan, tensors, absent, wanted, self.backend)
        values, count, slope, *rest = self.steps[key](*tensors)
        return Answer(values, count, slope, tuple(rest[: len(inputs.row)]), tuple(rest[len(inputs.row) :]))

    def _inputs(self, start: int, stop: int, dot: Tensor, upstream: Tensor) -> _Inputs:
        plan, masks = self.plan, self.plan.masks
        row = tuple(x[start:stop].detach() for x in plan.row)
        shared = tuple(x.detach() for x in plan.shared)
        if not plan.needs_masks:
            return _Inputs(dot, upstream, None, None, None, None, None, None, row, shared)
        explicit = masks.positive is not None
        return _Inputs(
            dot,
            upstream,
            None if explicit else _part(masks.labels, start, stop),
            None if explicit else masks.gallery_labels,
            _part(masks.positive, start, stop),
            _part(masks.negative, start, stop),
            _part(self.own, start, stop),
            masks.valid,
            row,
            shared,
        )


def _part(tensor: Tensor | None, start: int, stop: int) -> Tensor | None:
    return None if tensor is None else tensor[start:stop]


def _compile(
    plan: Plan, tensors: list[Tensor], absent: tuple[bool, ...], wanted: Wanted, backend: str
) -> Callable[..., Any]:
    """Trace value and slopes of a block of such tensors, and compile what was traced."""
    from torch.fx.experimental.proxy_tensor import make_fx

    function, sizes, products, needs_masks = plan.function, plan.sizes, plan.products, plan.needs_masks
    rows = len(plan.row)

    def joint(*given: Tensor) -> tuple[Tensor | None, ...]:
        left = list(given)
        first: list[Any] = [None if gone else left.pop(0) for gone in absent]
        inputs = _Inputs._make([*first, tuple(left[:rows]), tuple(left[rows:])])
        positive, negative = inputs.dot.new_empty(0), inputs.dot.new_empty(0)
        if needs_masks:
            positive, negative = whole_rows(*inputs[2:8], inputs.dot)
        found = differentiate(
            function, inputs.dot, positive, negative, inputs.row, inputs.shared, sizes, inputs.upstream, wanted
        )
        slope = found.dot if found.dot is None or products is None else found.dot.to(products)
        return found.values, found.counts, slope, *found.row, *found.shared

    traced = make_fx(joint, tracing_mode="fake")(*tensors)
    return torch.compile(traced, backend=backend, dynamic=False)

"""One block as one compiled step: masks from labels, values, counts and slopes, without a matrix kept between them.

The row function and its gradient are traced together once for each shape, then compiled as one graph; so a block costs the
host one call. What is traced holds the settings of the loss as constants; other settings are traced anew.

One thread at a time compiles. Blocks of others go without meanwhile, by the same formula in other steps, so that their last
digits may be others: a single thread gets the same bits in every run, threads that compile at the same time may not.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

from nearkin.engine import gate, stages
from nearkin.engine.facts import facts
from nearkin.engine.plan import Kernel, Plan
from nearkin.engine.shadow import origin
from nearkin.engine.step import Answer, Eager, Wanted, differentiate
from nearkin.masks import Parts
from nearkin.tracing import by_engine, tracing

# Compiled steps of each loss object; entries go when the object goes.
MOST = 24
"""Steps of one loss; beyond, since shapes seem to change all the time, blocks run without a compiler."""
_STEPS: weakref.WeakKeyDictionary[object, dict[Any, Callable[..., Any]]] = weakref.WeakKeyDictionary()


def ours(owner: object) -> bool:
    """Whether a loss is one of this package, whose row function is known to compile."""
    return type(owner).__module__.startswith("nearkin.losses.")


class Compiled:
    """Steps of a plan through ``torch.compile``, kept with the loss that made the plan."""

    def __init__(self, plan: Plan, backend: str) -> None:
        self.plan, self.backend = plan, backend
        owner = origin(plan.function.__self__)  # type: ignore[attr-defined]
        self.own = plan.masks.own_columns(plan.source.device) if plan.needs_masks else None
        self.steps, self.name = _STEPS.setdefault(owner, {}), type(owner).__name__
        held = facts(owner, mode=False)
        self.facts = (backend, held, plan.function.__name__, plan.sizes, plan.needs_masks, plan.products)

    def __call__(
        self, start: int, stop: int, dot: Tensor, upstream: Tensor, wanted: Wanted, sheet: Tensor | None
    ) -> Answer:
        plan = self.plan
        parts = plan.masks.parts(start, stop, self.own) if plan.needs_masks else Parts()
        if plan.kernel is not None and stages.worth(dot) and parts.labels is not None and parts.valid is None:
            assert parts.gallery_labels is not None
            return self._by_hand(plan.kernel, dot, parts.labels, parts.gallery_labels, parts.own, upstream, wanted)
        given = [dot, upstream, *(x for x in parts if x is not None)]
        given += [x[start:stop].detach() for x in plan.row] + [x.detach() for x in plan.shared]
        absent = tuple(x is None for x in parts)
        # Also what makes torch compile a graph again, which a known step must not: others may be inside of theirs.
        kinds = tuple((x.shape, x.stride(), x.dtype, x.device, x.is_inference()) for x in given)
        key = (self.facts, wanted, absent, kinds)
        found = None
        if not by_engine():  # else somebody's row function came here while it is traced, and goes on to be traced
            step = self.steps.get(key)
            found = self._first(key, given, absent, wanted) if step is None else gate.enter(step, given)
        if found is None:
            return Eager(plan)(start, stop, dot.to(upstream.dtype), upstream, wanted, None)
        values, count, slope, *rest = found
        return Answer(values, count, slope, tuple(rest[: len(plan.row)]), tuple(rest[len(plan.row) :]))

    def _first(self, key: Any, given: list[Tensor], absent: tuple[bool, ...], wanted: Wanted) -> Any:
        """What a step gives that is compiled for it; None where there are enough, or another thread compiles."""
        if len(self.steps) >= MOST:
            warnings.warn(
                f"{self.name} has compiled {MOST} steps, so other sizes and settings run without a compiler, more slowly; "
                "call it with fewer sizes of batches, or make a new loss where settings change for good.",
                stacklevel=2,
            )
            return None
        with gate.alone() as free:
            if not free:
                return None
            step = self.steps.get(key)  # another thread's, meanwhile
            if step is None:
                step = _compile(self.plan, given, absent, wanted, self.backend)
            found = step(*given)
            # Kept only now: torch compiles in the first call, which is not for those who find it here.
            self.steps[key] = step
            return found

    def _by_hand(
        self,
        kernel: Kernel,
        dot: Tensor,
        labels: Tensor,
        others: Tensor,
        own: Tensor | None,
        upstream: Tensor,
        wanted: Wanted,
    ) -> Answer:
        values = kernel(dot, labels, others, own, upstream, wanted.dot, self.plan.gallery is None)
        nothing = (None,) * len(wanted.row), (None,) * len(wanted.shared)
        return Answer(values, None, dot if wanted.dot else None, *nothing)


def _known(plan: Plan) -> bool:
    """Whether nobody else wrote a part of a plan's function."""
    owner: Any = plan.function.__self__  # type: ignore[attr-defined]
    miner = getattr(owner, "chosen", None)
    return ours(owner) and (miner is None or miner.function is None)


def _compile(
    plan: Plan, given: list[Tensor], absent: tuple[bool, ...], wanted: Wanted, backend: str
) -> Callable[..., Any]:
    """Trace value and slopes of a block of such tensors, and compile what was traced."""
    from torch.fx.experimental.proxy_tensor import make_fx

    function, sizes, products, needs_masks = plan.function, plan.sizes, plan.products, plan.needs_masks
    rows = len(plan.row)
    cut = stages.worth(given[0])
    # On a CPU the compiler fails where something made of what is overwritten later is kept in between, as an exponential is
    # that is read twice: none of our own formulas has that, those of others may.
    in_place = not cut and (given[0].is_cuda or _known(plan))

    def joint(dot: Tensor, upstream: Tensor, *rest: Tensor) -> tuple[Tensor | None, ...]:
        left = list(rest)
        parts = Parts(*(None if gone else left.pop(0) for gone in absent))
        inner = dot.to(upstream.dtype)
        positive, negative = parts.masks(inner) if needs_masks else (inner.new_empty(0), inner.new_empty(0))
        found = differentiate(
            function, inner, positive, negative, tuple(left[:rows]), tuple(left[rows:]), sizes, upstream, wanted
        )
        slope = found.dot if found.dot is None or products is None else found.dot.to(products)
        if in_place and slope is not None and slope.dtype == dot.dtype:
            slope = dot.copy_(slope)  # nobody reads the inner products after this
        return found.values, found.counts, slope, *found.row, *found.shared

    options: dict[str, Any] | None = None
    if backend == "inductor":
        # Fast exponentials have more digits than 16-bit factors leave to what they are taken of. Maxima and sums in one go
        # are given up with a warning where a row is cut into pieces.
        options = {"use_fast_math": products is not None, "online_softmax": False}

    def compiler(graph: fx.GraphModule) -> Callable[..., Any]:
        return torch.compile(graph, backend=backend, dynamic=False, options=options)

    with tracing():
        traced = make_fx(joint, tracing_mode="fake")(*given)
    return stages.staged(traced, given, 2, compiler) if cut else compiler(traced)

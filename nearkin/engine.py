"""Runs a row-wise loss dense, blocked or compiled: the same value and the same gradient, different memory.

A row-wise loss is a function of one block of rows of the pair matrix. *dense* gives it all rows at once and leaves the
rest to autograd. *blocked* takes some rows at a time, forms their gradient on the spot and keeps nothing of size n x m.
*compiled* is blocked with the function passed through ``torch.compile``.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nearkin import checks
from nearkin.masks import Masks
from nearkin.pairs import Mask, inverse_norms, through_unit, unit

ENGINES = ("auto", "dense", "blocked", "compiled")
REDUCTIONS = ("mean", "none")

# One value per row, or a numerator and a count per row where the whole batch shares one divisor.
RowResult = Tensor | tuple[Tensor, Tensor]
# (inner products, positive, negative, row inputs, shared inputs, sizes) of some rows -> result of these rows.
RowFunction = Callable[[Tensor, Mask, Tensor, tuple[Tensor, ...], tuple[Tensor, ...], "Sizes"], RowResult]

# Entries of one block. On a CPU the few matrices that a row function makes of it should stay in the cache, and be small
# beside the embeddings; yet products of fewer than 256 rows are slow.
CPU_BLOCK = 2**19
GPU_BLOCK = 2**25
# Bytes of a piece of memory, never touched, whose freeing tells the C library that pieces of this size come and go (glibc
# takes up to 32 MiB for that). It then keeps what blocks free instead of giving it back to the system, whose fresh pages
# would cost more than the arithmetic done on them.
LARGE = 2**25 - 2**13
# Up to this many entries one dense pass is as lean and has fewer launches.
CPU_DENSE = 2**20
GPU_DENSE = 2**24


class Sizes(NamedTuple):
    """What a row function may rely on: the most positives of any row, the embedding size, and whether it may overwrite the
    inner products it is given, which nobody reads after it."""

    depth: int = 0
    dim: int = 0
    spare: bool = False


NO_SIZES = Sizes()


@dataclass(frozen=True)
class Plan:
    """All that a row-wise loss needs; nothing in it is of size n x m unless the caller gave explicit masks.

    ``source`` holds the vectors of the queries, with ``unit`` still to be scaled to length 1: blocks do that for their own
    rows, so that no second batch of vectors need exist. ``gallery`` holds the columns as they are compared; None means that
    the queries are the columns too. Without ``column_gradient`` the columns are constants.
    ``row`` inputs have one entry per query, ``shared`` inputs go whole to every block; both may need gradient.
    """

    function: RowFunction
    source: Tensor
    masks: Masks
    gallery: Tensor | None = None
    row: tuple[Tensor, ...] = ()
    shared: tuple[Tensor, ...] = ()
    weights: Tensor | None = None
    column_gradient: bool = True
    sizes: Sizes = NO_SIZES
    needs_masks: bool = True
    unit: bool = False
    total: Callable[[Tensor], Tensor] | None = None  # the sum over all processes of what the loss is divided by

    @cached_property
    def queries(self) -> Tensor:
        """The queries as they are compared."""
        return unit(self.source) if self.unit else self.source

    @property
    def columns(self) -> Tensor:
        return self.queries if self.gallery is None else self.gallery

    def rows(self, start: int, stop: int, like: Tensor, sheet: Tensor | None = None) -> tuple[Mask, Tensor]:
        """The masks of some rows; nothing for a function that does not look at them."""
        if not self.needs_masks:
            return like.new_empty(0), like.new_empty(0)
        return self.masks.rows(start, stop, like, sheet)


def check(name: str, engine: str, rowwise: bool, why: str) -> None:
    """Raise unless the engine is known and fits the loss."""
    kind = engine.split(":")[0] if isinstance(engine, str) else engine
    if kind not in ENGINES:
        raise ValueError(checks.unknown(f"{name}: engine", engine, ENGINES))
    if not rowwise and kind in ("blocked", "compiled"):
        raise ValueError(f"{name} runs dense only, got engine={engine!r}: {why}; use engine='auto' or 'dense'.")


def run(plan: Plan, engine: str = "auto", reduction: str = "mean") -> Tensor:
    """The loss of a plan: a scalar, or with reduction "none" one value per row whose mean is the scalar."""
    kind, _, backend = engine.partition(":")
    if kind == "auto":
        kind = choose(*plan.masks.shape, plan.source.device)
    if kind == "dense":
        return dense(plan, reduction)
    function = compiled(plan.function, backend or "inductor") if kind == "compiled" else plan.function
    return _Blocked.apply(plan, function, reduction, plan.source, plan.gallery, *plan.row, *plan.shared)


def choose(rows: int, columns: int, device: torch.device) -> str:
    """What "auto" means here: dense while the matrix is small for the device, blocked beyond."""
    return "dense" if rows * columns <= (GPU_DENSE if device.type == "cuda" else CPU_DENSE) else "blocked"


def block_rows(rows: int, columns: int, device: torch.device) -> int:
    """Rows of a block, even so that blocks have at most two shapes."""
    m = max(1, columns)
    if device.type == "cuda":
        most = max(16, GPU_BLOCK // m, min(128, 2**23 // m))
    else:
        # At least 256 rows, or 128, while these are no great memory.
        most = max(16, CPU_BLOCK // m, min(256, 2**20 // m), min(128, 2**23 // m))
    blocks = -(-rows // most)
    return -(-rows // blocks)


# ---------------------------------------------------------------------------------------------------- dense


def dense(plan: Plan, reduction: str = "mean", dot: Tensor | None = None) -> Tensor:
    """All rows at once under plain autograd; ``dot`` may be given to differentiate with respect to the matrix."""
    if dot is None:
        columns = plan.columns if plan.column_gradient else plan.columns.detach()
        dot = plan.queries @ columns.T
    positive, negative = plan.rows(0, len(dot), dot)
    result = plan.function(dot, positive, negative, plan.row, plan.shared, plan.sizes)
    numerator, count = result if isinstance(result, tuple) else (result, None)
    if reduction == "mean" and count is None and plan.weights is None and plan.total is None:
        return numerator.mean()
    divisor = _divisor(plan, numerator, count)
    weighted = numerator if plan.weights is None else numerator * plan.weights
    return weighted * (len(numerator) / divisor) if reduction == "none" else weighted.sum() / divisor


def _divisor(plan: Plan, numerator: Tensor, count: Tensor | None) -> Tensor:
    """What the sum over rows is divided by: the (weighted) number of rows or counts, never 0."""
    count = torch.ones_like(numerator) if count is None else count.detach()
    found = (count if plan.weights is None else count * plan.weights).sum()
    if plan.total is not None:
        found = plan.total(found)
    return torch.where(found > 0, found, torch.ones_like(found))


# ---------------------------------------------------------------------------------------------------- blocked


class _Blocked(torch.autograd.Function):
    """Value and gradient block by block. For a scalar the gradient is formed on the way and scaled in backward; for
    reduction "none" the upstream vector is unknown before backward, which therefore goes over the rows again."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        function: RowFunction,
        reduction: str,
        source: Tensor,
        gallery: Tensor | None,
        *inputs: Tensor,
    ) -> Tensor:
        needs = ctx.needs_input_grad[3:]
        each = reduction == "none"
        upstream = torch.ones(len(source), dtype=source.dtype, device=source.device)
        if plan.weights is not None:
            upstream = upstream * plan.weights
        sweep = _Sweep(plan, function, upstream, needs, any(needs) and not each)
        numerator = sweep.numerator
        divisor = _divisor(plan, numerator, sweep.count)
        ctx.plan, ctx.function, ctx.needs, ctx.each = plan, function, needs, each
        # The first backward scales these gradients in place, a second one forms them again.
        ctx.sweep = None if each else sweep
        # The inputs are saved so that writing into them before backward is an error, as with any other function.
        ctx.save_for_backward(upstream, divisor, source, gallery, *inputs)
        return numerator * upstream * (len(numerator) / divisor) if each else (numerator * upstream).sum() / divisor

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        upstream, divisor, *_ = ctx.saved_tensors
        sweep, ctx.sweep = ctx.sweep, None
        if ctx.each:
            upstream = upstream * grad * (len(upstream) / divisor)
        if sweep is None:
            sweep = _Sweep(ctx.plan, ctx.function, upstream, ctx.needs, True)
        return None, None, None, *sweep.gradients(None if ctx.each else grad / divisor)


class _Sweep:
    """One walk over the rows: numerators (n,), counts (n,) or None, and, if wanted, the gradients of
    upstream . numerators for the inputs that need them."""

    def __init__(
        self, plan: Plan, function: RowFunction, upstream: Tensor, needs: tuple[bool, ...], want: bool
    ) -> None:
        self.plan, self.function, self.upstream, self.want = plan, function, upstream, want
        self.own = plan.gallery is None
        self.spare = function is plan.function  # a compiler makes its own copies
        self.vectors = plan.source.detach()
        self.inverse = inverse_norms(self.vectors) if plan.unit else None
        # Columns are read by every block and so prepared whole; rows that are not columns are prepared block by block.
        if plan.gallery is None:
            self.columns = self.vectors if self.inverse is None else self.vectors * self.inverse
        else:
            self.columns = plan.gallery.detach()
        self.row_side = want and needs[0]
        self.column_side = want and plan.column_gradient and (needs[0] if self.own else needs[1])
        # Nothing is filled with zeros only to be added to: a block that writes first makes the sums over columns.
        self.query_grad: Tensor | None = None
        if self.row_side and not (self.own and self.column_side):
            self.query_grad = torch.empty_like(self.vectors)
        self.gallery_grad: Tensor | None = None
        row, shared = needs[2 : 2 + len(plan.row)], needs[2 + len(plan.row) :]
        self.row_grads = [torch.zeros_like(x) if want and need else None for x, need in zip(plan.row, row, strict=True)]
        self.shared_grads = [
            torch.zeros_like(x) if want and need else None for x, need in zip(plan.shared, shared, strict=True)
        ]
        n, m = plan.masks.shape
        self.numerator = self.vectors.new_empty(n)
        self.count: Tensor | None = None
        step = block_rows(n, m, self.vectors.device)
        if self.vectors.device.type == "cpu":
            torch.empty(LARGE, dtype=torch.uint8)
        # Memory that every block writes anew: taking and giving it back each time would cost as much as filling it.
        self.buffer, self.sheet = self.vectors.new_empty(step, m), self.vectors.new_empty(step, m)
        for start in range(0, n, step):
            # A function of its own, so that the tensors of a block are gone before the next one makes its own.
            self._block(start, min(start + step, n))
        del self.columns, self.buffer, self.sheet

    def _queries(self, start: int, stop: int) -> Tensor:
        """Some queries as they are compared."""
        if self.own:
            return self.columns[start:stop]
        rows = self.vectors[start:stop]
        if self.inverse is None:
            return rows
        # Where their gradient will be written last of all is room for the unit vectors.
        room = None if self.query_grad is None else self.query_grad[start:stop]
        return torch.mul(rows, self.inverse[start:stop], out=room)

    def _block(self, start: int, stop: int) -> None:
        plan = self.plan
        queries = self._queries(start, stop)
        dot = torch.mm(queries, self.columns.T, out=self.buffer[: stop - start])
        leaf = _leaf(dot, self.row_side or self.column_side)
        row = tuple(_leaf(x[start:stop], grad is not None) for x, grad in zip(plan.row, self.row_grads, strict=True))
        shared = tuple(_leaf(x, grad is not None) for x, grad in zip(plan.shared, self.shared_grads, strict=True))
        positive, negative = plan.rows(start, stop, dot, self.sheet)
        with torch.set_grad_enabled(self.want):
            result = self.function(leaf, positive, negative, row, shared, plan.sizes._replace(spare=self.spare))
        values = result[0] if isinstance(result, tuple) else result
        self.numerator[start:stop] = values.detach()
        if isinstance(result, tuple):
            self.count = torch.empty_like(self.numerator) if self.count is None else self.count
            self.count[start:stop] = result[1].detach()
        leaves = [x for x in (leaf, *row, *shared) if x.requires_grad]
        if not leaves:
            return
        slopes: tuple[Tensor | None, ...] = (None,) * len(leaves)
        if values.requires_grad:
            slopes = torch.autograd.grad(values, leaves, self.upstream[start:stop], allow_unused=True)
        found = dict(zip(map(id, leaves), slopes, strict=True))
        if leaf.requires_grad:
            slope = found[id(leaf)]
            self._add(start, stop, queries, dot.zero_() if slope is None else slope)
        for x, total in zip(row, self.row_grads, strict=True):
            if total is not None and (slope := found[id(x)]) is not None:
                total[start:stop] = slope
        for x, total in zip(shared, self.shared_grads, strict=True):
            if total is not None and (slope := found[id(x)]) is not None:
                total += slope

    def _add(self, start: int, stop: int, queries: Tensor, slope: Tensor) -> None:
        """The products of a block's slopes (b, m) with columns and rows, added to the gradients of rows and columns."""
        if self.column_side:
            total = self.query_grad if self.own else self.gallery_grad
            total = torch.mm(slope.T, queries) if total is None else total.addmm_(slope.T, queries)
            if self.own:
                self.query_grad = total
            else:
                self.gallery_grad = total
        if self.row_side:
            assert self.query_grad is not None
            part = self.query_grad[start:stop]
            if self.own and self.column_side:
                part.addmm_(slope, self.columns)
            else:
                torch.mm(slope, self.columns, out=part)

    def _unit(self, part: slice) -> Tensor:
        assert self.inverse is not None
        return self.vectors[part] * self.inverse[part]

    def gradients(self, scale: Tensor | None) -> list[Tensor | None]:
        """The gradients of all inputs, times ``scale``, made of the sums in place."""
        rest = [None if self.own else self.gallery_grad, *self.row_grads, *self.shared_grads]
        for grad in rest:
            if grad is not None and scale is not None:
                grad.mul_(scale)
        if self.query_grad is not None and self.inverse is not None:
            through_unit(self.query_grad, self._unit, self.inverse, scale, self.query_grad)
        elif self.query_grad is not None and scale is not None:
            self.query_grad.mul_(scale)
        return [self.query_grad, *rest]


def _leaf(tensor: Tensor, need: bool) -> Tensor:
    return tensor.detach().requires_grad_(need)


# ---------------------------------------------------------------------------------------------------- compiled

# Compiled functions of each loss object; entries go when the object goes.
_COMPILED: weakref.WeakKeyDictionary[object, dict[tuple[str, str], Any]] = weakref.WeakKeyDictionary()


def compiled(method: RowFunction, backend: str) -> RowFunction:
    """A method through torch.compile, once per object and backend.

    The copy has a code object of its own: the compiler counts recompilations per code object, and two losses of one
    class would otherwise use up each other's allowance.
    """
    owner, function = method.__self__, method.__func__  # type: ignore[attr-defined]
    store = _COMPILED.setdefault(owner, {})
    key = (function.__name__, backend)
    if key not in store:
        copy = types.FunctionType(
            function.__code__.replace(),
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        store[key] = torch.compile(copy, backend=backend, dynamic=False)
    return functools.partial(store[key], owner)

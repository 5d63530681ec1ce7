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
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nearkin import checks
from nearkin.masks import Masks
from nearkin.pairs import Mask

ENGINES = ("auto", "dense", "blocked", "compiled")
REDUCTIONS = ("mean", "none")

# One value per row, or a numerator and a count per row where the whole batch shares one divisor.
RowResult = Tensor | tuple[Tensor, Tensor]
# (inner products, positive, negative, row inputs, shared inputs, sizes) of some rows -> result of these rows.
RowFunction = Callable[[Tensor, Mask, Tensor, tuple[Tensor, ...], tuple[Tensor, ...], "Sizes"], RowResult]

# Entries of one block. On a CPU a handful of float32 blocks of 4 MiB stay in the shared cache.
CPU_BLOCK = 2**20
GPU_BLOCK = 2**25
# Up to this many entries one dense pass is as lean and has fewer launches.
CPU_DENSE = 2**20
GPU_DENSE = 2**24


class Sizes(NamedTuple):
    """Whole numbers that a row function may rely on: the most positives of any row, and the embedding size."""

    depth: int = 0
    dim: int = 0


NO_SIZES = Sizes()


@dataclass(frozen=True)
class Plan:
    """All that a row-wise loss needs; nothing in it is of size n x m unless the caller gave explicit masks.

    ``row`` inputs have one entry per query, ``shared`` inputs go whole to every block; both may need gradient.
    ``gallery`` None means that the queries are the columns too. Without ``column_gradient`` the columns are constants.
    """

    function: RowFunction
    queries: Tensor
    masks: Masks
    gallery: Tensor | None = None
    row: tuple[Tensor, ...] = ()
    shared: tuple[Tensor, ...] = ()
    weights: Tensor | None = None
    column_gradient: bool = True
    sizes: Sizes = NO_SIZES
    needs_masks: bool = True

    @property
    def columns(self) -> Tensor:
        return self.queries if self.gallery is None else self.gallery

    def rows(self, start: int, stop: int, like: Tensor) -> tuple[Mask, Tensor]:
        """The masks of some rows; nothing for a function that does not look at them."""
        if not self.needs_masks:
            return like.new_empty(0), like.new_empty(0)
        return self.masks.rows(start, stop, like)


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
        kind = choose(len(plan.queries), len(plan.columns), plan.queries.device)
    if kind == "dense":
        return dense(plan, reduction)
    function = compiled(plan.function, backend or "inductor") if kind == "compiled" else plan.function
    return _Blocked.apply(plan, function, reduction, plan.queries, plan.gallery, *plan.row, *plan.shared)


def choose(rows: int, columns: int, device: torch.device) -> str:
    """What "auto" means here: dense while the matrix is small for the device, blocked beyond."""
    return "dense" if rows * columns <= (GPU_DENSE if device.type == "cuda" else CPU_DENSE) else "blocked"


def block_rows(rows: int, columns: int, device: torch.device) -> int:
    """Rows of a block, even so that blocks have at most two shapes."""
    budget = GPU_BLOCK if device.type == "cuda" else CPU_BLOCK
    # At least 128 rows while that is no great memory: thinner products are slow.
    most = max(16, min(128, 2**23 // max(1, columns)), budget // max(1, columns))
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
    if reduction == "mean" and count is None and plan.weights is None:
        return numerator.mean()
    divisor = _divisor(numerator, count, plan.weights)
    weighted = numerator if plan.weights is None else numerator * plan.weights
    return weighted * (len(numerator) / divisor) if reduction == "none" else weighted.sum() / divisor


def _divisor(numerator: Tensor, count: Tensor | None, weights: Tensor | None) -> Tensor:
    """What the sum over rows is divided by: the (weighted) number of rows or counts, never 0."""
    count = torch.ones_like(numerator) if count is None else count.detach()
    total = (count if weights is None else count * weights).sum()
    return torch.where(total > 0, total, torch.ones_like(total))


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
        queries: Tensor,
        gallery: Tensor | None,
        *inputs: Tensor,
    ) -> Tensor:
        needs = ctx.needs_input_grad[3:]
        ctx.plan, ctx.function, ctx.needs, ctx.each = plan, function, needs, reduction == "none"
        upstream = torch.ones(len(queries), dtype=queries.dtype, device=queries.device)
        if plan.weights is not None:
            upstream = upstream * plan.weights
        numerator, count, grads = _sweep(plan, function, upstream, needs, any(needs) and not ctx.each)
        divisor = _divisor(numerator, count, plan.weights)
        if ctx.each:
            ctx.save_for_backward(upstream * (len(numerator) / divisor))
            return numerator * upstream * (len(numerator) / divisor)
        ctx.present = [grad is not None for grad in grads]
        ctx.save_for_backward(divisor, *[grad for grad in grads if grad is not None])
        return (numerator * upstream).sum() / divisor

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if ctx.each:
            (scale,) = ctx.saved_tensors
            _, _, grads = _sweep(ctx.plan, ctx.function, grad * scale, ctx.needs, True)
        else:
            divisor, *saved = ctx.saved_tensors
            left = iter(saved)
            grads = [next(left) * (grad / divisor) if present else None for present in ctx.present]
        return None, None, None, *grads


def _sweep(
    plan: Plan,
    function: RowFunction,
    upstream: Tensor,
    needs: tuple[bool, ...],
    want: bool,
) -> tuple[Tensor, Tensor | None, list[Tensor | None]]:
    """Numerators (n,), counts (n,) or None, and the gradients of upstream . numerators for the inputs that need it."""
    queries, columns = plan.queries.detach(), plan.columns.detach()
    n, m = len(queries), len(columns)
    need_row_side, need_column_side = (want and needs[0], want and needs[1])
    if plan.gallery is None:
        need_column_side = need_row_side
    need_column_side = need_column_side and plan.column_gradient
    need_row, need_shared = needs[2 : 2 + len(plan.row)], needs[2 + len(plan.row) :]

    query_grad = torch.zeros_like(queries) if need_row_side else None
    gallery_grad = query_grad if plan.gallery is None else torch.zeros_like(columns) if need_column_side else None
    row_grads = [torch.zeros_like(x) if want and need else None for x, need in zip(plan.row, need_row, strict=True)]
    shared_grads = [
        torch.zeros_like(x) if want and need else None for x, need in zip(plan.shared, need_shared, strict=True)
    ]

    numerator, count = queries.new_empty(n), None
    step = block_rows(n, m, queries.device)
    buffer = queries.new_empty(step, m)
    for start in range(0, n, step):
        stop = min(start + step, n)
        block = queries[start:stop]
        with torch.no_grad():
            dot = torch.mm(block, columns.T, out=buffer[: stop - start])
        dot = dot.detach().requires_grad_(need_row_side or need_column_side)
        row = tuple(_leaf(x[start:stop], grad is not None) for x, grad in zip(plan.row, row_grads, strict=True))
        shared = tuple(_leaf(x, grad is not None) for x, grad in zip(plan.shared, shared_grads, strict=True))
        positive, negative = plan.rows(start, stop, dot)
        with torch.set_grad_enabled(want):
            result = function(dot, positive, negative, row, shared, plan.sizes)
        values = result[0] if isinstance(result, tuple) else result
        numerator[start:stop] = values.detach()
        if isinstance(result, tuple):
            count = torch.empty_like(numerator) if count is None else count
            count[start:stop] = result[1].detach()
        leaves = [leaf for leaf in (dot, *row, *shared) if leaf.requires_grad]
        if not want or not leaves or not values.requires_grad:
            continue
        found = dict(
            zip(
                map(id, leaves),
                torch.autograd.grad(values, leaves, upstream[start:stop], allow_unused=True),
                strict=True,
            )
        )
        matrix_grad = found.get(id(dot))
        with torch.no_grad():
            if matrix_grad is not None:
                if query_grad is not None:
                    query_grad[start:stop].addmm_(matrix_grad, columns)
                if gallery_grad is not None and need_column_side:
                    gallery_grad.addmm_(matrix_grad.T, block)
            for leaf, total in zip(row, row_grads, strict=True):
                if total is not None and found[id(leaf)] is not None:
                    total[start:stop] = found[id(leaf)]
            for leaf, total in zip(shared, shared_grads, strict=True):
                if total is not None and found[id(leaf)] is not None:
                    total += found[id(leaf)]
    return numerator, count, [query_grad, None if plan.gallery is None else gallery_grad, *row_grads, *shared_grads]


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

"""Some rows of the pair matrix at a time: value and gradient block by block, nothing of size n x m kept."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from nearkin import kernels
from nearkin.derivatives import once
from nearkin.engine import size
from nearkin.engine.plan import Plan, divisor
from nearkin.engine.product import add_product, inner, product
from nearkin.engine.step import Answer, Eager, Wanted
from nearkin.vectors import inverse_norms, narrow, through_unit, work

# Bytes of a piece of memory, never touched, whose freeing tells the C library that pieces of this size come and go (glibc
# takes up to 32 MiB for that). It then keeps what blocks free instead of giving it back to the system, whose fresh pages
# would cost more than the arithmetic done on them.
LARGE = 2**25 - 2**13


class Step(Protocol):
    """Values and slopes of some rows from their inner products."""

    def __call__(
        self, start: int, stop: int, dot: Tensor, upstream: Tensor, wanted: Wanted, sheet: Tensor | None
    ) -> Answer: ...


def blocked(plan: Plan, step: Step | None = None, reduction: str = "mean") -> Tensor:
    """The loss of a plan, block by block; ``step`` works on a block, None: the row function under autograd."""
    learns = torch.is_grad_enabled()  # inside of a function of autograd it never is
    step = step or Eager(plan)
    return _Blocked.apply(plan, step, reduction, learns, plan.source, plan.gallery, *plan.row, *plan.shared)


class _Blocked(torch.autograd.Function):
    """Value and gradient block by block. For a scalar the gradient is formed on the way and scaled in backward; for
    reduction "none" the upstream vector is unknown before backward, which therefore goes over the rows again."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        step: Step,
        reduction: str,
        learns: bool,
        source: Tensor,
        gallery: Tensor | None,
        *inputs: Tensor,
    ) -> Tensor:
        needs = ctx.needs_input_grad[4:]
        each = reduction == "none"
        upstream = torch.ones(len(source), dtype=work(source.dtype), device=source.device)
        if plan.weights is not None:
            upstream = upstream * plan.weights
        sweep = _Sweep(plan, step, upstream, needs, learns and any(needs) and not each)
        numerator = sweep.numerator
        by = divisor(plan, numerator, sweep.count)
        ctx.plan, ctx.step, ctx.needs, ctx.each, ctx.by = plan, step, needs, each, by
        # The first backward scales these gradients in place, a second one forms them again.
        ctx.sweep = None if each else sweep
        # The inputs are saved so that writing into them before backward is an error, as with any other function.
        ctx.save_for_backward(upstream, source, gallery, *inputs)
        weighted = numerator if plan.weights is None else numerator * upstream
        return weighted * (len(numerator) / by) if each else weighted.sum() / by

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        upstream, by = ctx.saved_tensors[0], ctx.by
        sweep, ctx.sweep = ctx.sweep, None
        if ctx.each:
            upstream = upstream * grad * (len(upstream) / by)
        if sweep is None:
            sweep = _Sweep(ctx.plan, ctx.step, upstream, ctx.needs, True)
        return None, None, None, None, *sweep.gradients(None if ctx.each else grad / by)


class _Sweep:
    """One walk over the rows: numerators (n,), counts (n,) or None, and, if wanted, the gradients of
    upstream . numerators for the inputs that need them."""

    def __init__(self, plan: Plan, step: Step, upstream: Tensor, needs: tuple[bool, ...], want: bool) -> None:
        self.plan, self.step, self.upstream = plan, step, upstream
        # Slopes that are rounded to float16 must fit into its short range, whatever the values are multiplied by.
        self.peak: Tensor | None = None
        if plan.products == torch.float16 and want:
            self.peak = upstream.abs().amax()
            self.upstream = upstream / torch.where(self.peak > 0, self.peak, 1)
        self.own = plan.gallery is None
        self.vectors, self.work = plan.source.detach(), work(plan.source.dtype)
        # Columns are read by every block and so prepared whole; rows that are not columns are prepared block by block.
        self.gallery = self.vectors if plan.gallery is None else plan.gallery.detach()
        self.gallery_inverse: Tensor | None = None
        if plan.unit if self.own else plan.gallery_unit:
            self.columns, self.gallery_inverse = _scaled(self.gallery, plan.products or self.work)
        else:
            self.columns = self._factors(self.gallery)
        self.inverse = self.gallery_inverse
        if not self.own:
            self.inverse = _inverse_norms(self.vectors) if plan.unit else None
        self.row_side = want and needs[0]
        self.column_side = want and plan.column_gradient and (needs[0] if self.own else needs[1])
        # Nothing is filled with zeros only to be added to: a block that writes first makes the sums over columns.
        self.query_grad: Tensor | None = None
        if self.row_side and not (self.own and self.column_side):
            form = torch.contiguous_format
            self.query_grad = torch.empty_like(self.vectors, dtype=self.work, memory_format=form)
        self.gallery_grad: Tensor | None = None
        row, shared = needs[2 : 2 + len(plan.row)], needs[2 + len(plan.row) :]
        self.wanted = Wanted(
            want,
            self.row_side or self.column_side,
            tuple(want and need for need in row),
            tuple(want and need for need in shared),
        )
        self.row_grads = [
            torch.zeros_like(x) if need else None for x, need in zip(plan.row, self.wanted.row, strict=True)
        ]
        self.shared_grads = [
            torch.zeros_like(x) if need else None for x, need in zip(plan.shared, self.wanted.shared, strict=True)
        ]
        n, m = plan.masks.shape
        self.numerator = self.upstream.new_empty(n)
        self.count: Tensor | None = None
        rows = size.block_rows(n, m, self.vectors.device)
        if self.vectors.device.type == "cpu":
            torch.empty(LARGE, dtype=torch.uint8)
        # Memory that every block writes anew: taking and giving it back each time would cost as much as filling it.
        eager = isinstance(step, Eager)
        self.buffer = self.vectors.new_empty(
            rows, m, dtype=self.work if eager else inner(plan.products, self.work, n * m)
        )
        self.sheet = torch.empty_like(self.buffer) if eager else None
        for start in range(0, n, rows):
            # A function of its own, so that the tensors of a block are gone before the next one makes its own.
            self._block(start, min(start + rows, n))
        del self.columns, self.buffer, self.sheet

    def _factors(self, vectors: Tensor) -> Tensor:
        """Vectors in the type in which they are multiplied."""
        return vectors if self.plan.products is None else vectors.to(self.plan.products)

    def _queries(self, start: int, stop: int) -> Tensor:
        """Some queries as they are compared."""
        if self.own:
            return self.columns[start:stop]
        rows = self.vectors[start:stop]
        if self.inverse is not None:
            # Where their gradient will be written last of all is room for the unit vectors.
            room = None if self.query_grad is None else self.query_grad[start:stop]
            rows = torch.mul(rows, self.inverse[start:stop], out=room)
        return self._factors(rows)

    def _block(self, start: int, stop: int) -> None:
        queries = self._queries(start, stop)
        dot = product(queries, self.columns.T, self.buffer[: stop - start])
        answer = self.step(start, stop, dot, self.upstream[start:stop], self.wanted, self.sheet)
        self.numerator[start:stop] = answer.values
        if answer.counts is not None:
            self.count = torch.empty_like(self.numerator) if self.count is None else self.count
            self.count[start:stop] = answer.counts
        if self.wanted.dot:
            slope = dot.zero_() if answer.dot is None else answer.dot
            self._add(start, stop, queries, self._factors(slope))
        for found, total in zip(answer.row, self.row_grads, strict=True):
            if total is not None and found is not None:
                total[start:stop] = found
        for found, total in zip(answer.shared, self.shared_grads, strict=True):
            if total is not None and found is not None:
                total += found

    def _add(self, start: int, stop: int, queries: Tensor, slope: Tensor) -> None:
        """The products of a block's slopes (b, m) with columns and rows, added to the gradients of rows and columns."""
        if self.column_side:
            total = self.query_grad if self.own else self.gallery_grad
            if total is None:
                empty = torch.empty_like(self.columns, dtype=self.work)
                total = product(slope.T, queries, empty)
            else:
                add_product(total, slope.T, queries)
            if self.own:
                self.query_grad = total
            else:
                self.gallery_grad = total
        if self.row_side:
            assert self.query_grad is not None
            part = self.query_grad[start:stop]
            if self.own and self.column_side:
                add_product(part, slope, self.columns)
            else:
                product(slope, self.columns, part)

    def gradients(self, scale: Tensor | None) -> list[Tensor | None]:
        """The gradients of all inputs, times ``scale``, made of the sums in place."""
        if self.peak is not None:
            scale = self.peak if scale is None else scale * self.peak
        others = [*self.row_grads, *self.shared_grads]
        for grad in others:
            if grad is not None and scale is not None:
                grad.mul_(scale)
        columns = None if self.own else _finished(self.gallery_grad, self.gallery, self.gallery_inverse, scale)
        return [_finished(self.query_grad, self.vectors, self.inverse, scale), columns, *others]


def _by_kernel(vectors: Tensor) -> bool:
    """Whether one kernel is to do what would take several, for launches or passes over many rows."""
    return vectors.is_cuda and vectors.dtype != torch.float64 and kernels.usable()


def _inverse_norms(vectors: Tensor) -> Tensor:
    """1 / |f| of rows (n, 1)."""
    if _by_kernel(vectors):
        from nearkin.engine import rows_kernel

        return rows_kernel.inverse_norms(vectors)
    return inverse_norms(vectors)


def _scaled(vectors: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Rows scaled to length 1 in that type, and 1 / |f| (n, 1)."""
    if _by_kernel(vectors):
        from nearkin.engine import rows_kernel

        return rows_kernel.unit(vectors, dtype)
    inverse = inverse_norms(vectors)
    return torch.mul(vectors, inverse, out=torch.empty_like(vectors, dtype=dtype)), inverse


def _finished(grad: Tensor | None, vectors: Tensor, inverse: Tensor | None, scale: Tensor | None) -> Tensor | None:
    """The gradient for vectors from that for what they are compared as, times ``scale``, in place where it can be."""
    if grad is None:
        return None
    if inverse is not None and _by_kernel(vectors):
        from nearkin.engine import rows_kernel

        factor = inverse if scale is None else inverse * scale
        narrower = vectors.dtype != grad.dtype
        out = torch.empty_like(vectors, memory_format=torch.contiguous_format) if narrower else grad
        return rows_kernel.through_unit(grad, vectors, inverse, factor, out)
    if inverse is not None:
        through_unit(grad, lambda part: vectors[part] * inverse[part], inverse, scale, grad)
    elif scale is not None:
        grad.mul_(scale)
    return narrow(grad, vectors.dtype)

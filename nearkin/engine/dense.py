"""All rows of the pair matrix at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nearkin.engine.plan import Plan, divisor


class _Product(torch.autograd.Function):
    """rows @ columns.T whose gradient keeps its precision also where somebody goes backward under autocast."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor) -> Tensor:
        ctx.save_for_backward(rows, columns)
        return rows @ columns.T

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        rows, columns = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):
            first = grad @ columns if ctx.needs_input_grad[0] else None
            return first, grad.T @ rows if ctx.needs_input_grad[1] else None


def dense(plan: Plan, reduction: str = "mean", dot: Tensor | None = None) -> Tensor:
    """All rows at once under plain autograd; ``dot`` may be given to differentiate with respect to the matrix."""
    if dot is None:
        columns = plan.columns if plan.column_gradient else plan.columns.detach()
        dot = _Product.apply(plan.queries, columns)
    positive, negative = plan.rows(0, len(dot), dot)
    result = plan.function(dot, positive, negative, plan.row, plan.shared, plan.sizes)
    numerator, count = result if isinstance(result, tuple) else (result, None)
    by = divisor(plan, numerator, count)
    if reduction == "mean" and isinstance(by, int):
        return numerator.mean()
    weighted = numerator if plan.weights is None else numerator * plan.weights
    return weighted * (len(numerator) / by) if reduction == "none" else weighted.sum() / by

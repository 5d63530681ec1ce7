"""All rows of the pair matrix at once."""

from __future__ import annotations

from torch import Tensor

from nearkin.engine.plan import Plan, divisor
from nearkin.engine.product import inner_products


def dense(plan: Plan, reduction: str = "mean", dot: Tensor | None = None) -> Tensor:
    """All rows at once under plain autograd; ``dot`` may be given to differentiate with respect to the matrix."""
    if dot is None:
        columns = plan.columns if plan.column_gradient else plan.columns.detach()
        dot = inner_products(plan.queries, columns)
    positive, negative = plan.rows(0, len(dot), dot)
    result = plan.function(dot, positive, negative, plan.row, plan.shared, plan.sizes)
    numerator, count = result if isinstance(result, tuple) else (result, None)
    by = divisor(plan, numerator, count)
    if reduction == "mean" and isinstance(by, int):
        return numerator.mean()
    weighted = numerator if plan.weights is None else numerator * plan.weights
    return weighted * (len(numerator) / by) if reduction == "none" else weighted.sum() / by

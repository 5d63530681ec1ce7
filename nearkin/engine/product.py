"""Matrix products whose factors may have fewer digits than their sums."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

NARROW = 2**25
"""Entries of a matrix from which inner products of 16-bit vectors are rounded to 16 bits, as plain torch rounds them:
reading and writing them is then most of the work."""


def factors(vectors: Tensor) -> torch.dtype | None:
    """The type in which unit vectors made of these are multiplied, None for their own.

    A batch of 16-bit numbers on a GPU has no more digits than its tensor cores take; sums are kept in float32.
    """
    return vectors.dtype if vectors.is_cuda and vectors.dtype in (torch.float16, torch.bfloat16) else None


def inner(products: torch.dtype | None, work: torch.dtype, entries: int) -> torch.dtype:
    """The type in which the inner products of a block are kept, of a matrix of so many in all."""
    return products if products is not None and entries >= NARROW else work


def product(first: Tensor, second: Tensor, out: Tensor) -> Tensor:
    """first @ second, written into ``out``."""
    if first.dtype == out.dtype:
        return torch.mm(first, second, out=out)
    if out.is_cuda:
        return torch.mm(first, second, out_dtype=out.dtype, out=out)
    return torch.mm(first.to(out.dtype), second.to(out.dtype), out=out)


def add_product(total: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """total + first @ second, in place of ``total``."""
    if first.dtype == total.dtype:
        return total.addmm_(first, second)
    if total.is_cuda:
        return torch.addmm(total, first, second, out_dtype=total.dtype, out=total)
    return total.addmm_(first.to(total.dtype), second.to(total.dtype))


def inner_products(rows: Tensor, columns: Tensor) -> Tensor:
    """rows @ columns.T, whose gradient keeps its precision also where somebody goes backward under autocast."""
    found: Tensor = _InnerProducts.apply(rows, columns)
    return found


class _InnerProducts(torch.autograd.Function):
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

"""Vectors as losses compare them: raw or of length 1, in float32 or better, safe at the ends of their range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nearkin.derivatives import once

# Numbers of one chunk of vectors: its float64 copy fits the cache of one core.
CHUNK = 2**17
GPU_CHUNK = 2**22

# Inner products of larger raw coordinates would not fit in float32 beside "infinitely far below" (``pairs.FAR``).
RAW_LIMIT = 1e12


def work(dtype: torch.dtype) -> torch.dtype:
    """The type in which numbers made of vectors of that type are kept: float32 or better."""
    return torch.promote_types(dtype, torch.float32)


class _Widen(torch.autograd.Function):
    """Half precision to float32; the gradient saturates at the half type's range instead of becoming infinite."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.dtype = vectors.dtype
        return vectors.float()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return narrow(grad, ctx.dtype)


def narrow(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """A gradient in the type of the vectors it belongs to, held to the range of that type."""
    if grad.dtype == dtype:
        return grad
    limit = torch.finfo(dtype).max
    found = torch.empty_like(grad, dtype=dtype)
    for part in chunks(grad):
        found[part] = grad[part].clamp(-limit, limit)
    return found


class _Held(torch.autograd.Function):
    """Coordinates held to the limit; the gradient there is that of the held point, which is finite."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        return vectors.clamp(-RAW_LIMIT, RAW_LIMIT)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def chunks(vectors: Tensor) -> Iterator[slice]:
    """Rows in pieces whose temporary results stay in the cache of a CPU; elsewhere larger ones, that take little memory."""
    numbers = CHUNK if vectors.device.type == "cpu" else GPU_CHUNK
    rows = max(1, numbers // max(1, vectors.shape[1]))
    return (slice(start, start + rows) for start in range(0, len(vectors), rows))


def inverse_norms(vectors: Tensor) -> Tensor:
    """1 / |f| of rows (n, 1); 0 for a zero row."""
    parts = [_inverse_norms(vectors[part]) for part in chunks(vectors)]
    return parts[0] if len(parts) == 1 else torch.cat(parts or [vectors.new_empty(0, 1, dtype=work(vectors.dtype))])


def _inverse_norms(rows: Tensor) -> Tensor:
    if rows.dtype == torch.float64:
        largest = rows.abs().amax(1, keepdim=True)
        safe = torch.where(largest > 0, largest, torch.ones_like(largest))
        norm = torch.linalg.vector_norm(rows / safe, dim=1, keepdim=True) * safe
        zero = norm < 1e-290
    else:
        # float64 accumulation holds the square of every float32, so nothing overflows or vanishes.
        norm = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)
        zero = norm < 1e-30
    return norm.reciprocal_().masked_fill_(zero, 0.0).to(work(rows.dtype))


def through_unit(
    grad: Tensor, unit: Callable[[slice], Tensor], inverse: Tensor, scale: Tensor | None, out: Tensor
) -> Tensor:
    """The gradient for rows f from that for f / |f|, times ``scale``, into ``out``, which may be ``grad`` itself.

    ``unit`` gives the unit vectors of some rows.
    """
    factor = inverse if scale is None else inverse * scale
    for part in chunks(grad):
        rows = unit(part)
        along = (grad[part] * rows).sum(1, keepdim=True)
        torch.addcmul(grad[part], rows, along, value=-1, out=out[part]).mul_(factor[part])
    return out


class _Unit(torch.autograd.Function):
    """f / |f| for rows; a zero row stays zero and gets no gradient."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        inverse = inverse_norms(vectors)
        unit = vectors * inverse
        ctx.save_for_backward(unit, inverse)
        return unit

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        return through_unit(grad, unit.__getitem__, inverse, None, torch.empty_like(grad))


def widen(vectors: Tensor) -> Tensor:
    """Half precision becomes float32; float32 and float64 stay as they are."""
    if vectors.dtype in (torch.float16, torch.bfloat16):
        return _Widen.apply(vectors)
    return vectors


def unit(vectors: Tensor) -> Tensor:
    """Rows scaled to length 1, in float32 or better.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return _Unit.apply(widen(vectors))


def raw(vectors: Tensor) -> Tensor:
    """Rows as they are, in float32 or better; float32 and bfloat16 are held to +-1e12 so that products stay finite."""
    if vectors.dtype in (torch.float16, torch.float64):
        return widen(vectors)
    vectors = widen(vectors)
    if vectors.device.type == "cpu":  # where looking is cheaper than a copy, and makes nobody wait
        low, high = torch.aminmax(vectors.detach())
        if low >= -RAW_LIMIT and high <= RAW_LIMIT:
            return vectors
    return _Held.apply(vectors)


class _Squares(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(vectors)
        return torch.cat([vectors[part].square().sum(1) for part in chunks(vectors)])

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (vectors,) = ctx.saved_tensors
        return vectors * (2 * grad)[:, None]


def squares(vectors: Tensor) -> Tensor:
    """Squared lengths of rows (n,)."""
    return _Squares.apply(vectors)


def poison(first: Tensor, *others: Tensor | None) -> Tensor:
    """0 if every entry is finite, NaN otherwise, without asking the device: added to a loss it makes NaN visible."""
    total = _not_finite(first)
    for tensor in others:
        if tensor is not None:
            total = total + _not_finite(tensor)
    return total


def _not_finite(tensor: Tensor) -> Tensor:
    low, high = torch.aminmax(tensor.detach())
    return low * 0 + high * 0

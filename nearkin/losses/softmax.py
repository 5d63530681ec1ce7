"""Softmax cross-entropy loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.derivatives import once
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.pairs import FAR
from nearkin.reductions import softmax_
from nearkin.space import COSINE, DOT, Space


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, place: Tensor, own: Tensor, slope: Tensor, scale: float, among: bool, spare: bool
    ) -> Tensor:
        shares, top = _shares(values, place, own, scale, among, values if spare else None)
        real = (top > -FAR / 2).to(own.dtype)  # 0 where there is no other column
        ctx.save_for_backward(values, place, own, slope, real)
        # The first backward turns this matrix into its gradient, a second one forms it again.
        ctx.shares, ctx.scale, ctx.among, ctx.spare = shares, scale, among, spare
        # The largest share belongs to the largest logit.
        value = top - shares.amax(1, keepdim=True).log() - own
        return (value if among else torch.where(real > 0, value, torch.zeros_like(value))).squeeze(1)

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None, None, None]:
        values, place, own, slope, real = ctx.saved_tensors
        shares, ctx.shares = ctx.shares, None
        if shares is None:
            assert not ctx.spare
            shares, _ = _shares(values, place, own, ctx.scale, ctx.among)
        grad = grad[:, None] * real
        own_grad = ((shares.gather(1, place) if ctx.among else 0) - 1) * grad * slope
        return shares.mul_(grad * ctx.scale).scatter_(1, place, own_grad), None, None, None, None, None, None


def _shares(
    values: Tensor, place: Tensor, own: Tensor, scale: float, among: bool, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Softmax of all columns, the target's left out unless it is ``among`` them, and each row's largest logit."""
    logits = torch.mul(values, scale, out=out).scatter_(1, place, own if among else torch.full_like(own, -FAR))
    top = logits.amax(1, keepdim=True)
    return softmax_(logits), top


def at_target(similarity: Tensor, target: Tensor) -> Tensor:
    """Each row's similarity to its target (b, 1), a constant."""
    return similarity.detach().gather(1, target[:, None])


def softmax(
    similarity: Tensor,
    target: Tensor,
    *,
    scale: float = 1.0,
    own: Tensor | None = None,
    slope: Tensor | None = None,
    among: bool = True,
    spare: bool = False,
) -> Tensor:
    """Cross-entropy of each row: -log of e^own over the sum of e^own and of e^(scale s) of the other columns.

    ``own`` (b, 1) is the target's logit, ``scale s`` unless given, and ``slope`` (b, 1) its derivative for s, which is
    ``scale`` unless given. Without ``among`` the sum is over the other columns only, and a row without any is 0.
    ``spare`` allows to overwrite the similarities; then the gradient can be asked for once.
    """
    if own is None:
        own = at_target(similarity, target) * scale
    if slope is None:
        slope = torch.full_like(own, scale)
    return _Softmax.apply(similarity, target[:, None], own, slope, scale, among, spare)


class Softmax(ProxyLoss):
    """Classifies: pulls a sample towards its class vector, pushes it from all others.

    Plain (default): cross-entropy over ``f_i . w_j``, raw vectors, no bias [DD 2.26]. ``normalized=True``: over
    ``scale x_i . w_j``, unit vectors.

    >>> loss = Softmax(classes=2, dim=4)
    >>> loss(torch.zeros(3, 4), torch.tensor([0, 1, 1]))
    tensor(0.6931, grad_fn=<AddBackward0>)
    """

    name = "softmax"
    limits = {"normalized": (True, False), "scale": checks.POSITIVE}

    def __init__(self, *, normalized: bool = False, scale: float = 20.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.normalized = normalized
        self.scale = scale
        self.proxies = self.make_proxies()

    @property
    def space(self) -> Space:
        return COSINE if self.normalized else DOT

    def rows(self, similarity: Tensor, target: Tensor, spare: bool) -> Tensor:
        return softmax(similarity, target, scale=self.scale if self.normalized else 1.0, spare=spare)

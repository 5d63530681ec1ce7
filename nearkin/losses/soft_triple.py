"""SoftTriple loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.derivatives import once
from nearkin.engine import Plan
from nearkin.losses.cosface import cosface
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.reductions import safe_exp_
from nearkin.space import through_unit_distance_, unit_distance


class _SoftMaximum(torch.autograd.Function):
    """sum_k softmax_k(s / gamma) s over the middle dimension, (b, centers, classes) -> (b, classes)."""

    @staticmethod
    def forward(ctx: Any, each: Tensor, gamma: float) -> Tensor:
        share = safe_exp_((each - each.amax(1, keepdim=True)).div_(gamma))
        share.div_(share.sum(1, keepdim=True))
        soft = (share * each).sum(1)
        ctx.save_for_backward(each, share, soft)
        ctx.gamma = gamma
        return soft

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        each, share, soft = ctx.saved_tensors
        slope = (each - soft[:, None]).div_(ctx.gamma).add_(1)
        return slope.mul_(share).mul_(grad[:, None]), None


class _Apart(torch.autograd.Function):
    """Sum of the distances between the centers of a class, over all classes; unit vectors, center by center."""

    @staticmethod
    def forward(ctx: Any, proxies: Tensor, centers: int) -> Tensor:
        own = proxies.unflatten(0, (centers, -1)).transpose(0, 1)
        # Ordered pairs, so every pair twice; a center is at distance 0 from itself.
        cosine = torch.bmm(own, own.transpose(1, 2))
        distance = unit_distance(cosine)
        value = distance.sum() / 2
        ctx.save_for_backward(proxies, through_unit_distance_(torch.ones_like(distance), distance, cosine))
        ctx.centers = centers
        return value

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        proxies, slope = ctx.saved_tensors
        own = proxies.unflatten(0, (ctx.centers, -1)).transpose(0, 1)
        # Each of the two members of an ordered pair gets the slope, and half of all of them is the value.
        return torch.bmm(slope * grad, own).transpose(0, 1).reshape(proxies.shape), None


def soft_maximum(similarity: Tensor, centers: int, gamma: float) -> Tensor:
    """Similarities to classes (b, classes): softmax-weighted means over the centers of each."""
    return _SoftMaximum.apply(similarity.unflatten(1, (centers, -1)), gamma)


def soft_triple(
    similarity: Tensor,
    target: Tensor,
    *,
    centers: int = 10,
    scale: float = 20.0,
    gamma: float = 0.1,
    margin: float = 0.01,
) -> Tensor:
    """Cross-entropy of each row over class similarities, each a softmax-weighted mean over the class's centers.

    The columns of ``similarity`` are the first centers of all classes, then the second ones, and so on.
    """
    return cosface(soft_maximum(similarity, centers, gamma), target, margin=margin, scale=scale)


class SoftTriple(ProxyLoss):
    """Classifies with several centers per class, softly assigned, and merges centers that are not needed (Qian 2019).

    ``S_c = sum_k softmax_k(x.w_c^k / gamma) x.w_c^k``;
    ``-log e^{a (S_y - margin)} / (e^{a (S_y - margin)} + sum_{j != y} e^{a S_j}) + tau / (C K (K-1)) sum_c sum_{t<u}
    sqrt(2 - 2 w_c^t . w_c^u)`` with a = ``scale``, K = ``centers``. DD 2.30 prints one center and no tau term.

    >>> loss = SoftTriple(classes=2, dim=4)
    >>> loss.proxies.shape
    torch.Size([2, 10, 4])
    """

    name = "soft_triple"
    limits = {
        "centers": checks.COUNT,
        "scale": checks.POSITIVE,
        "gamma": checks.POSITIVE,
        "margin": checks.ANY,
        "tau": checks.NOT_NEGATIVE,
    }

    def __init__(
        self,
        *,
        centers: int = 10,
        scale: float = 20.0,
        gamma: float = 0.1,
        margin: float = 0.01,
        tau: float = 0.2,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        checks.setting(self.name, "centers", centers, checks.COUNT)
        self.centers = centers
        self.scale = scale
        self.gamma = gamma
        self.margin = margin
        self.tau = tau
        self.proxies = self.make_proxies(centers)

    def rows(self, similarity: Tensor, target: Tensor, spare: bool) -> Tensor:
        return soft_triple(
            similarity, target, centers=self.centers, scale=self.scale, gamma=self.gamma, margin=self.margin
        )

    def apart(self, plan: Plan) -> Tensor | None:
        if self.tau == 0 or self.centers == 1:
            return None
        return self.tau / (self.classes * self.centers * (self.centers - 1)) * _Apart.apply(plan.columns, self.centers)

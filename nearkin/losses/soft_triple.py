"""SoftTriple loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nearkin import checks
from nearkin.engine import Plan, Sizes
from nearkin.losses.cosface import lowered
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.losses.softmax import softmax
from nearkin.pairs import Mask, root, safe_exp_


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
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        each, share, soft = ctx.saved_tensors
        slope = (each - soft[:, None]).div_(ctx.gamma).add_(1)
        return slope.mul_(share).mul_(grad[:, None]), None


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
    logits = scale * _SoftMaximum.apply(similarity.unflatten(1, (centers, -1)), gamma)
    return softmax(lowered(logits, target, scale * margin), target)


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

    def block(
        self,
        dot: Tensor,
        positive: Mask,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: Sizes,
    ) -> Tensor:
        return soft_triple(dot, row[0], centers=self.centers, scale=self.scale, gamma=self.gamma, margin=self.margin)

    def apart(self, plan: Plan) -> Tensor | None:
        if self.tau == 0 or self.centers == 1:
            return None
        centers = plan.columns.view(self.centers, self.classes, self.dim).transpose(0, 1)
        # All ordered pairs of centers, so each pair twice; a center is at distance 0 from itself.
        distances = root(2 - 2 * centers @ centers.transpose(1, 2)).sum() / 2
        return self.tau / (self.classes * self.centers * (self.centers - 1)) * distances

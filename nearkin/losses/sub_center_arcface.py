"""Sub-center ArcFace loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.derivatives import once
from nearkin.losses.arcface import arcface
from nearkin.losses.proxy_base import Common, ProxyLoss


class _Nearest(torch.autograd.Function):
    """Maximum over the middle dimension, (b, centers, classes) -> (b, classes); equals share the gradient.

    torch's own gradient of a maximum goes through booleans, which is slow on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, each: Tensor) -> Tensor:
        nearest = each.amax(1)
        ctx.save_for_backward(each, nearest)
        return nearest

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        each, nearest = ctx.saved_tensors
        share = (each - nearest[:, None]).sign_().add_(1)  # 1 where equal, else 0
        return share.mul_((grad / share.sum(1))[:, None])


class SubCenterArcFace(ProxyLoss):
    """ArcFace with several centers per class, of which the nearest counts (Deng 2020).

    arcface on ``cos theta_c = max_k x . w_c^k``; proxies have shape (classes, centers, dim).

    >>> loss = SubCenterArcFace(classes=2, dim=4)
    >>> loss.proxies.shape
    torch.Size([2, 3, 4])
    """

    name = "sub_center_arcface"
    limits = {
        "centers": checks.COUNT,
        "degrees": checks.Limit(low=0, high=90),
        "scale": checks.POSITIVE,
    }

    def __init__(
        self, *, centers: int = 3, degrees: float = 28.6, scale: float = 64.0, **common: Unpack[Common]
    ) -> None:
        super().__init__(**common)
        checks.setting(self.name, "centers", centers, checks.COUNT)
        self.centers = centers
        self.degrees = degrees
        self.scale = scale
        self.proxies = self.make_proxies(centers)

    def rows(self, similarity: Tensor, target: Tensor, spare: bool) -> Tensor:
        nearest = _Nearest.apply(similarity.unflatten(1, (self.centers, -1)))
        return arcface(nearest, target, degrees=self.degrees, scale=self.scale)

"""Sub-center ArcFace loss."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.arcface import arcface
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.pairs import Mask


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

    def block(
        self,
        dot: Tensor,
        positive: Mask,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: Sizes,
    ) -> Tensor:
        centers = dot.unflatten(1, (self.centers, -1))
        # The nearest center by its place: the gradient of a maximum is slow on a CPU, that of a gather is not.
        nearest = centers.gather(1, centers.detach().argmax(1, keepdim=True)).squeeze(1)
        return arcface(nearest, row[0], degrees=self.degrees, scale=self.scale)

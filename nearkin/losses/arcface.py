"""ArcFace loss."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.losses.softmax import at_target, softmax
from nearkin.space import flat


def arcface(
    similarity: Tensor, target: Tensor, *, degrees: float = 28.6, scale: float = 64.0, spare: bool = False
) -> Tensor:
    """Cross-entropy of each row with the angle to its own proxy enlarged by ``degrees``.

    Beyond pi the target is ``cos theta - m sin m``, m in radians, so that it stays monotone.
    """
    m = math.radians(degrees)
    own = at_target(similarity, target)
    square = 1 - own.square()
    sine = square.clamp(min=0).sqrt()
    inside = own > -math.cos(m)
    shifted = torch.where(inside, own * math.cos(m) - sine * math.sin(m), own - m * math.sin(m))
    # d sin / d cos = -cos / sin, taken as 0 where the sine is rounding noise.
    steep = square > flat(square.dtype)
    turn = torch.where(steep, own / torch.where(steep, sine, 1.0), 0.0)
    slope = torch.where(inside, math.cos(m) + turn * math.sin(m), 1.0)
    return softmax(similarity, target, scale=scale, own=shifted * scale, slope=slope * scale, spare=spare)


class ArcFace(ProxyLoss):
    """Classifies unit vectors with an angular margin between classes.

    ``-log e^{s cos(theta_y + m)} / (e^{s cos(theta_y + m)} + sum_{j != y} e^{s cos theta_j})`` with s = ``scale`` and
    m = ``degrees`` [DD 2.29]; where theta_y + m > pi the target logit is ``s (cos theta_y - m sin m)``.

    >>> loss = ArcFace(classes=2, dim=4)
    >>> loss(torch.randn(3, 4), torch.tensor([0, 1, 1])).shape
    torch.Size([])
    """

    name = "arcface"
    limits = {
        "degrees": checks.Limit(low=0, high=90),
        "scale": checks.POSITIVE,
    }

    def __init__(self, *, degrees: float = 28.6, scale: float = 64.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.degrees = degrees
        self.scale = scale
        self.proxies = self.make_proxies()

    def rows(self, similarity: Tensor, target: Tensor, spare: bool) -> Tensor:
        return arcface(similarity, target, degrees=self.degrees, scale=self.scale, spare=spare)

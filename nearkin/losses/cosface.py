"""CosFace loss."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from nearkin import checks
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.losses.softmax import at_target, softmax


def cosface(
    similarity: Tensor, target: Tensor, *, margin: float = 0.35, scale: float = 64.0, spare: bool = False
) -> Tensor:
    """Cross-entropy of each row with the similarity to its own proxy lowered by ``margin``."""
    own = (at_target(similarity, target) - margin) * scale
    return softmax(similarity, target, scale=scale, own=own, spare=spare)


class CosFace(ProxyLoss):
    """Classifies unit vectors with a cosine margin between classes (Wang 2018).

    As arcface with the target logit ``scale (cos theta_y - margin)``.

    >>> loss = CosFace(classes=2, dim=4)
    >>> loss(torch.randn(3, 4), torch.tensor([0, 1, 1])).shape
    torch.Size([])
    """

    name = "cosface"
    limits = {"margin": checks.ANY, "scale": checks.POSITIVE}

    def __init__(self, *, margin: float = 0.35, scale: float = 64.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.margin = margin
        self.scale = scale
        self.proxies = self.make_proxies()

    def rows(self, similarity: Tensor, target: Tensor, spare: bool) -> Tensor:
        return cosface(similarity, target, margin=self.margin, scale=self.scale, spare=spare)

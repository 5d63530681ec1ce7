"""SoftTriple loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.losses.softmax import softmax
from nearkin.pairs import root, unit


def soft_triple(
    similarity: Tensor,
    positive: Tensor,
    *,
    centers: int = 10,
    scale: float = 20.0,
    gamma: float = 0.1,
    margin: float = 0.01,
) -> Tensor:
    """Cross-entropy of each row over class similarities, each a softmax-weighted mean over the class's centers."""
    each = similarity.unflatten(1, (-1, centers))
    share = torch.softmax(each / gamma, 2)
    own = positive[:, ::centers]
    return softmax(scale * torch.sub((share * each).sum(2), own, alpha=margin), own)


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
        positive: Tensor,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: Sizes,
    ) -> Tensor:
        return soft_triple(dot, positive, centers=self.centers, scale=self.scale, gamma=self.gamma, margin=self.margin)

    def apart(self, samples: Tensor) -> Tensor | None:
        if self.tau == 0 or self.centers == 1:
            return None
        centers = unit(self.proxies.flatten(0, 1).to(samples.dtype)).view_as(self.proxies)
        first, second = torch.triu_indices(self.centers, self.centers, 1, device=centers.device)
        similarity = (centers @ centers.transpose(1, 2))[:, first, second]
        distance = root(2 - 2 * similarity).sum()
        return self.tau / (self.classes * self.centers * (self.centers - 1)) * distance

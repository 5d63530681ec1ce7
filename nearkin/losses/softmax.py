"""Softmax cross-entropy loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.pairs import COSINE, DOT, Mask, Space


def softmax(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of each row: -log of the softmax at the target column."""
    return torch.nn.functional.cross_entropy(logits, target, reduction="none")


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

    def block(
        self,
        dot: Tensor,
        positive: Mask,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: Sizes,
    ) -> Tensor:
        return softmax(self.scale * dot if self.normalized else dot, row[0])

"""Proxy-Anchor loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.pairs import masked_logsumexp, ratio


def proxy_pull(similarity: Tensor, positive: Tensor, *, margin: float = 0.1, scale: float = 32.0) -> Tensor:
    """log(1 + sum over a proxy's samples of e^(-scale (s - margin))) of each row."""
    return masked_logsumexp((similarity - margin) * -scale, positive, one=True)


def proxy_push(similarity: Tensor, negative: Tensor, *, margin: float = 0.1, scale: float = 32.0) -> Tensor:
    """log(1 + sum over the other samples of e^(scale (s + margin))) of each row."""
    return masked_logsumexp((similarity + margin) * scale, negative, one=True)


def classes_to_present(labels: Tensor, classes: int, weights: Tensor | None, like: Tensor) -> Tensor:
    """|W| / |W+|: the number of proxies over the number of those with a sample in the batch."""
    here = like.new_ones(len(labels)) if weights is None else torch.sign(weights)
    present = like.new_zeros(classes).scatter_reduce(0, labels.long().clamp(0, classes - 1), here, "amax")
    return ratio(like.new_tensor(float(classes)), present.sum())


class ProxyAnchor(ProxyLoss):
    """Each proxy is an anchor that pulls all samples of its class and pushes all others [DD 2.31].

    ``1/|W+| sum_{w in W+} log(1 + sum_{X+_w} e^{-a (s - margin)}) + 1/|W| sum_W log(1 + sum_{X-_w} e^{a (s + margin)})``
    with a = ``scale``; W+ are the proxies with a sample in the batch. Rows are the proxies. DD 2.32 lacks the
    exponentials in both numerators.

    >>> loss = ProxyAnchor(classes=2, dim=4)
    >>> loss(torch.randn(3, 4), torch.tensor([0, 1, 1])).shape
    torch.Size([])
    """

    name = "proxy_anchor"
    limits = {"margin": checks.ANY, "scale": checks.POSITIVE}
    proxies_are_rows = True

    def __init__(self, *, margin: float = 0.1, scale: float = 32.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.margin = margin
        self.scale = scale
        self.proxies = self.make_proxies()

    def inputs(
        self, proxies: Tensor, samples: Tensor, labels: Tensor, weights: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        shared = (classes_to_present(labels, self.classes, weights, samples),)
        return (), shared if weights is None else (*shared, weights)

    def block(
        self,
        dot: Tensor,
        positive: Tensor,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: Sizes,
    ) -> Tensor:
        share, *weights = shared
        if weights:
            positive, negative = positive * weights[0], negative * weights[0]
        pull = proxy_pull(dot, positive, margin=self.margin, scale=self.scale)
        return share * pull + proxy_push(dot, negative, margin=self.margin, scale=self.scale)

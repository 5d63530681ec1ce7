"""Proxy repulsion: the thesis' own proxy loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks, engine
from nearkin.losses.proxy_anchor import classes_to_present, proxy_pull, proxy_push, weighed
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.masks import Masks
from nearkin.pairs import Mask


class ProxyRepulsion(ProxyLoss):
    """Proxies pull the samples of their class and push each other.

    The first term of proxy_anchor, plus ``1/|W| sum_w log(1 + sum_{w' != w} e^{a (w.w' + margin)})`` (variant 1,
    [DD 6.1]) or with ``w.w'`` replaced by ``sum_{x in batch} (w.x)(x.w')`` (variant 2, [DD 6.2]); a = ``scale``. DD 6.1
    prints the second sum over other proxies only in its index; it runs over all of W. ``reduction="none"`` gives one value
    per proxy, (classes,).

    >>> loss = ProxyRepulsion(classes=2, dim=4, variant=2)
    >>> loss(torch.randn(3, 4), torch.tensor([0, 1, 1])).shape
    torch.Size([])
    """

    name = "proxy_repulsion"
    limits = {"variant": (1, 2), "margin": checks.ANY, "scale": checks.POSITIVE}
    proxies_are_rows = True

    def __init__(self, *, variant: int = 1, margin: float = 0.1, scale: float = 32.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.variant = variant
        self.margin = margin
        self.scale = scale
        self.proxies = self.make_proxies()

    def shared(self, labels: Tensor, weights: Tensor | None, like: Tensor) -> tuple[Tensor, ...]:
        share = classes_to_present(labels, self.classes, weights, like)
        return (share,) if weights is None else (share, weights)

    def block(
        self,
        dot: Tensor,
        positive: Mask,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: engine.Sizes,
    ) -> Tensor:
        weights = shared[1] if len(shared) > 1 else None
        return shared[0] * proxy_pull(dot, weighed(positive, weights), margin=self.margin, scale=self.scale)

    def repel(
        self,
        dot: Tensor,
        positive: Mask,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: engine.Sizes,
    ) -> Tensor:
        """The second term: proxies against proxies."""
        return proxy_push(dot, negative, margin=self.margin, scale=self.scale, cosine=self.variant == 1)

    def value(self, plan: engine.Plan, reduction: str = "mean", dot: Tensor | None = None) -> Tensor:
        pull = super().value(plan, reduction, dot)
        numbers = torch.arange(self.classes, device=plan.queries.device)
        masks = Masks((self.classes, self.classes), numbers, numbers)
        proxies, samples = plan.queries, plan.columns
        weights = plan.shared[1] if len(plan.shared) > 1 else None
        if self.variant == 1:
            return pull + engine.run(engine.Plan(self.repel, proxies, masks), self.engine, reduction)
        if dot is not None:
            seen = dot if weights is None else dot * weights
            return pull + engine.dense(engine.Plan(self.repel, proxies, masks), reduction, seen @ dot.T)
        # w.(sum x x^T).w' as an inner product of (W sum x x^T) and W: nothing of size classes x batch x classes.
        weighed = samples if weights is None else samples * weights[:, None]
        spread = engine.inner_products(proxies, engine.inner_products(weighed.T, samples.T))
        return pull + engine.run(engine.Plan(self.repel, spread, masks, proxies), self.engine, reduction)

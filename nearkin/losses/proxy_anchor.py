"""Proxy-Anchor loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks, kernels
from nearkin.engine import Sizes
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.pairs import Few, Mask, kept, take
from nearkin.reductions import counted_logsumexp, ratio

WALKED = 2**26
"""Pairs of a batch from which the gradients of its samples are finished one chunk after the other."""
EXP_RANGE = 60.0
"""Exponents up to this, and sums of their exponentials over any batch, fit in float32."""


def proxy_pull(similarity: Tensor, positive: Mask, *, margin: float = 0.1, scale: float = 32.0) -> Tensor:
    """log(1 + sum over a proxy's samples of e^(-scale (s - margin))) of each row."""
    near, p = take(similarity, positive)
    within = -scale * (1 - margin), scale * (1 + margin)
    return counted_logsumexp((near - margin) * -scale, p, one=True, within=within)


def proxy_push(
    similarity: Tensor, negative: Mask, *, margin: float = 0.1, scale: float = 32.0, cosine: bool = True
) -> Tensor:
    """log(1 + sum over the other samples of e^(scale (s + margin))) of each row; not ``cosine``: s may be of any size."""
    far, n = take(similarity, negative)
    # scale (far + margin) in one pass.
    logits = torch.add(far.new_full((), scale * margin), far, alpha=scale)
    within = (-scale * (1 - margin), scale * (1 + margin)) if cosine else None
    return counted_logsumexp(logits, n, one=True, within=within)


def weighed(mask: Mask, weights: Tensor | None) -> Mask:
    """A mask of samples, each counting as often as its weight says."""
    if weights is None:
        return mask
    return kept(mask, weights[mask.columns] if isinstance(mask, Few) else weights)


def classes_to_present(labels: Tensor, classes: int, weights: Tensor | None, like: Tensor) -> Tensor:
    """|W| / |W+|: the number of proxies over the number of those with a sample in the batch."""
    here = like.new_ones(len(labels)) if weights is None else torch.sign(weights)
    present = like.new_zeros(classes).scatter_reduce(0, labels.long().clamp(0, classes - 1), here, "amax")
    return ratio(like.new_full((), classes), present.sum())


class ProxyAnchor(ProxyLoss):
    """Each proxy is an anchor that pulls all samples of its class and pushes all others [DD 2.31].

    ``1/|W+| sum_{w in W+} log(1 + sum_{X+_w} e^{-a (s - margin)}) + 1/|W| sum_W log(1 + sum_{X-_w} e^{a (s + margin)})``
    with a = ``scale``; W+ are the proxies with a sample in the batch. Rows are the proxies. DD 2.32 lacks the
    exponentials in both numerators. ``reduction="none"`` gives one value per proxy, (classes,).

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

    def walks(self, embeddings: Tensor, kind: str) -> bool:
        """Whether the engine's way would keep more than need be: large batches of 16 bits with a wide range on a GPU."""
        return (
            kind == "compiled"
            and embeddings.is_cuda
            and embeddings.dtype == torch.bfloat16
            and self.proxies.dtype == torch.float32
            and len(embeddings) * self.classes >= WALKED
            and self.scale * (1 + abs(self.margin)) <= EXP_RANGE
            and all(getattr(type(self), name) is getattr(ProxyAnchor, name) for name in ("block", "shared", "apart"))
            and kernels.usable()
        )

    def walk(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        from nearkin.losses.proxy_anchor_kernel import Settings, walked

        share = classes_to_present(labels, self.classes, None, self.proxies.detach())
        return walked(embeddings, self.proxies, labels, share, Settings(self.margin, self.scale))

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
        sizes: Sizes,
    ) -> Tensor:
        weights = shared[1] if len(shared) > 1 else None
        pull = proxy_pull(dot, weighed(positive, weights), margin=self.margin, scale=self.scale)
        return shared[0] * pull + proxy_push(dot, weighed(negative, weights), margin=self.margin, scale=self.scale)

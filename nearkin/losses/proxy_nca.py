"""Proxy-NCA loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks, engine
from nearkin.losses.proxy_base import Common, ProxyLoss
from nearkin.losses.softmax import softmax
from nearkin.masks import Masks
from nearkin.pairs import few
from nearkin.reductions import counted_logsumexp, ratio


def proxy_nca(similarity: Tensor, target: Tensor, *, scale: float = 3.0, spare: bool = False) -> Tensor:
    """q d_y^2 + log sum over the other proxies of e^(-q d^2) of each row, q = scale^2; 0 without other proxies.

    With d^2 = 2 - 2 s the constant goes out of the difference.
    """
    return softmax(similarity, target, scale=2 * scale**2, among=False, spare=spare)


class ProxyNCA(ProxyLoss):
    """Pulls a sample to its proxy against all other proxies [RLL 4-5, DD 2.27].

    ``-log(e^{-q |x_i - w_y|^2} / sum_{z != y} e^{-q |x_i - w_z|^2})``, q = scale^2, unit vectors; the positive is not in
    the denominator. RLL 5 prints unsquared distances; DD 2.27 is q = 1/2.

    assignment "static": one proxy per class. "dynamic": ``classes`` free proxies, p(u) the nearest one of sample u; the
    mean over u in P_i, the denominator over the distinct p(z) of z in N_i other than p(u); which is nearest is a
    constant. Dynamic is not row-wise: a term reads the assignments of the whole batch.

    >>> loss = ProxyNCA(classes=2, dim=4)
    >>> loss(torch.randn(3, 4), torch.tensor([0, 1, 1])).shape
    torch.Size([])
    """

    name = "proxy_nca"
    fixed = {**ProxyLoss.fixed, "assignment": "each assignment has engines and labels of its own"}
    limits = {"assignment": ("static", "dynamic"), "scale": checks.POSITIVE}
    why = "dynamic assignment reads the nearest proxies of the whole batch"

    def __init__(self, *, assignment: str = "static", scale: float = 3.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.assignment = assignment
        self.scale = scale
        self.rowwise = assignment != "dynamic"
        self.labels_are_proxies = self.rowwise
        self.proxies = self.make_proxies()

    def rows(self, similarity: Tensor, target: Tensor, spare: bool) -> Tensor:
        return proxy_nca(similarity, target, scale=self.scale, spare=spare)

    def whole(self, plan: engine.Plan, dot: Tensor) -> Tensor:
        nearest, positive, rivals = self._assigned(plan, dot)
        logit = -(self.scale**2) * (2 - 2 * dot)
        partners, counts = few(positive, int((positive > 0).sum(1).max()))
        total = dot[:, 0] * 0
        for k in range(partners.shape[1]):
            own = nearest[partners[:, k], None]
            others = rivals.scatter(1, own, 0.0)
            value = counted_logsumexp(logit, others) - logit.gather(1, own).squeeze(1)
            total = total + counts[:, k] * torch.where(others.sum(1) > 0, value, torch.zeros_like(value))
        value = ratio(total, counts.sum(1))
        return value.mean() if plan.weights is None else ratio((value * plan.weights).sum(), plan.weights.sum())

    def _assigned(self, plan: engine.Plan, dot: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The nearest proxy of each sample, positive pairs of samples, and the proxies of each sample's negatives."""
        labels = plan.masks.labels
        assert labels is not None
        positive, negative = Masks((len(labels), len(labels)), labels, labels).all_rows(dot)
        nearest = dot.detach().argmax(1)
        taken = torch.nn.functional.one_hot(nearest, dot.shape[1]).to(dot.dtype)
        return nearest, positive, torch.sign(negative @ taken)

    def pair_masks(self, plan: engine.Plan, dot: Tensor) -> tuple[Tensor, Tensor]:
        if self.rowwise:
            return super().pair_masks(plan, dot)
        nearest, positive, rivals = self._assigned(plan, dot)
        own = torch.sign(positive @ torch.nn.functional.one_hot(nearest, dot.shape[1]).to(dot.dtype))
        return own, rivals * (1 - own)

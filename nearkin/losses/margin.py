"""Margin loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor, nn

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask, above, split
from nearkin.reductions import counted_sum
from nearkin.sides import signed, together
from nearkin.space import UNIT_DISTANCE, Space
from nearkin.vectors import work


def margin(
    distance: Tensor, positive: Mask, negative: Mask, beta: Tensor, *, margin: float = 0.2
) -> tuple[Tensor, Tensor]:
    """Sum of [margin + d - beta]+ over P and [margin - d + beta]+ over N of each row, and the number of non-zero terms.

    ``beta`` has one entry per row (Wu 2017; [DD 2.23] with I = +-1).
    """
    both = together(positive, negative)
    if both:
        beyond = torch.relu(margin + signed(both[0]) * (distance - beta[:, None]))
        counts = both[0] + both[1]
        return counted_sum(beyond, counts), counted_sum(above(beyond, 0.0), counts)
    near, p, far, n = split(distance, positive, negative)
    outside = torch.relu(near + (margin - beta)[:, None])
    inside = torch.relu((margin + beta)[:, None] - far)
    active = above(outside, 0.0).mul_(p).sum(1) + above(inside, 0.0).mul_(n).sum(1)
    return counted_sum(outside, p) + counted_sum(inside, n), active


class Margin(PairLoss):
    """Pulls positives nearer than ``beta - margin``, pushes negatives beyond ``beta + margin``; beta is learned.

    ``[margin + I (d_ij - beta)]+`` with I = +1 for positives and -1 for negatives, summed over the mined pairs and
    divided by the number of non-zero terms (Wu 2017; DD 2.23 prints I in {0, 1}, which gives negatives no gradient).
    ``beta`` is the start of one learned threshold, or of one per class with ``classes``; ``learn_beta=False`` fixes it.
    ``lr_multiplier`` is the factor of its learning rate in ``parameter_groups``.
    ``miner`` is "distance_weighted" unless set; None takes all pairs.

    >>> loss = Margin(miner=None)
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.4142, grad_fn=<AddBackward0>)
    """

    name = "margin"
    fixed = {
        "beta": "loss.beta is where loss.thresholds began",
        "classes": "loss.thresholds hold one number for each",
        "learn_beta": "loss.thresholds were made to be learned or not",
    }
    limits = {
        "margin": checks.NOT_NEGATIVE,
        "beta": checks.NOT_NEGATIVE,
        "classes": checks.Limit(low=1, whole=True, none=True),
        "learn_beta": (True, False),
        "lr_multiplier": checks.NOT_NEGATIVE,
    }

    def __init__(
        self,
        *,
        margin: float = 0.2,
        beta: float = 1.2,
        classes: int | None = None,
        learn_beta: bool = True,
        lr_multiplier: float = 1.0,
        **common: Unpack[Common],
    ) -> None:
        common.setdefault("miner", "distance_weighted")
        super().__init__(**common)
        self.margin = margin
        self.beta = beta
        self.classes = classes
        self.learn_beta = learn_beta
        self.lr_multiplier = lr_multiplier
        for key in ("beta", "classes", "learn_beta"):
            checks.setting(self.name, key, getattr(self, key), self.limits[key])
        self.thresholds = nn.Parameter(torch.full((classes or 1,), float(beta)), requires_grad=learn_beta)

    @property
    def space(self) -> Space:
        return UNIT_DISTANCE

    def extra(self, queries: Tensor, labels: Tensor | None) -> tuple[Tensor, ...]:
        thresholds = self.thresholds.to(work(queries.dtype))
        if self.classes is None:
            return (thresholds.expand(len(queries)),)
        if labels is None:
            raise ValueError(
                "labels must be given for margin with one beta per class, got masks only; pass labels too."
            )
        checks.label_range("labels", labels, self.classes)
        known = (labels >= 0) & (labels < self.classes)
        mine = thresholds[labels.long().clamp(0, self.classes - 1)]
        return (torch.where(known, mine, torch.full_like(mine, torch.nan)),)

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> tuple[Tensor, Tensor]:
        return margin(matrix, mined.positive, mined.negative, extra[0], margin=self.margin)

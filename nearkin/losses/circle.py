"""Circle loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask, split
from nearkin.reductions import counted_logsumexp, log1pexp


def circle(similarity: Tensor, positive: Mask, negative: Mask, *, margin: float = 0.4, scale: float = 80.0) -> Tensor:
    """log(1 + sum_N e^(scale a_n (s - margin)) sum_P e^(-scale a_p (s - 1 + margin))) of each row, 0 if a set is empty.

    a_p = [1 + margin - s]+ and a_n = [s + margin]+ are constants.
    """
    near, p, far, n = split(similarity, positive, negative)
    push = counted_logsumexp((far - margin) * torch.relu(far.detach() + margin).mul_(scale), n)
    pull = counted_logsumexp((near - (1 - margin)) * torch.relu(1 + margin - near.detach()).mul_(-scale), p)
    return log1pexp(push + pull)


class Circle(PairLoss):
    """Pulls positives and pushes negatives, each pair the more the farther it is from its optimum (Sun 2020).

    ``log(1 + sum_N e^{scale a_n (s - margin)} sum_P e^{-scale a_p (s - (1 - margin))})``, ``a_p = [1 + margin - s]+`` and
    ``a_n = [s + margin]+`` constant; 0 where either set is empty.

    >>> loss = Circle()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(55.0932)
    """

    name = "circle"
    limits = {"margin": checks.ANY, "scale": checks.POSITIVE}

    def __init__(self, *, margin: float = 0.4, scale: float = 80.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.margin = margin
        self.scale = scale

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return circle(matrix, mined.positive, mined.negative, margin=self.margin, scale=self.scale)

"""Binomial deviance loss."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask
from nearkin.reductions import ratio
from nearkin.sides import Side, soft_sums


def binomial_deviance(
    similarity: Tensor, positive: Mask, negative: Mask, *, alpha: float = 2.0, beta: float = 50.0, gamma: float = 0.5
) -> Tensor:
    """mean_P log(1 + e^(alpha (gamma - s))) + mean_N log(1 + e^(beta (s - gamma))) of each row [UV 12]."""
    sides = {"pull": Side(-alpha, gamma), "push": Side(beta, gamma)}
    pull, p, push, n = soft_sums(similarity, positive, negative, **sides)
    return ratio(pull, p) + ratio(push, n)


class BinomialDeviance(PairLoss):
    """Pulls positives above the threshold ``gamma`` and pushes negatives below it, softly, each pair on its own.

    ``l_i = mean_P log(1 + e^{alpha (gamma - s)}) + mean_N log(1 + e^{beta (s - gamma)})`` [UV 12], mean over anchors
    (the paper prints a sum).

    >>> loss = BinomialDeviance()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.3133)
    """

    name = "binomial_deviance"
    limits = {"alpha": checks.POSITIVE, "beta": checks.POSITIVE, "gamma": checks.ANY}

    def __init__(self, *, alpha: float = 2.0, beta: float = 50.0, gamma: float = 0.5, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return binomial_deviance(
            matrix, mined.positive, mined.negative, alpha=self.alpha, beta=self.beta, gamma=self.gamma
        )

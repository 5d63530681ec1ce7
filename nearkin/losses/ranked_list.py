"""Ranked list loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import (
    FAR,
    UNIT_DISTANCE,
    Mask,
    Space,
    above,
    below,
    counted_mean,
    counted_sum,
    hide,
    ratio,
    safe_exp_,
    split,
)

# Exponents down to minus this are far from vanishing in float32; distances are at most 2.
EXP_RANGE = 60.0


def ranked_list(
    distance: Tensor,
    positive: Mask,
    negative: Mask,
    *,
    alpha: float = 1.2,
    margin: float = 0.4,
    temperature: float = 10.0,
    balance: float = 1.0,
) -> Tensor:
    """L_P + balance L_N of each row [RLL 8-14].

    L_P is the mean of d - (alpha - margin) over the positives farther than alpha - margin; L_N the mean of alpha - d
    over the negatives nearer than alpha, weighted by the constant exp(temperature (alpha - d)).
    """
    inside = alpha - margin
    close, p, far, n = split(distance, positive, negative)
    outer = above(close, inside).mul_(p)
    pull = counted_mean(close - inside, outer)
    with torch.no_grad():
        weight = below(far, alpha).mul_(n)
        logit = far * -temperature
        # Weights are normalised below, so the factor e^(temperature alpha) does not matter.
        if temperature * 2 <= EXP_RANGE:
            weight.mul_(logit.exp_())
        else:
            logit = hide(logit, weight)
            top = logit.amax(1, keepdim=True)
            weight.mul_(safe_exp_(logit.sub_(top.masked_fill_(top < -FAR / 2, 0))))
        total = weight.sum(1)
    # The weighted mean of alpha - d, written so that the matrix is read once.
    push = alpha * torch.sign(total) - ratio(counted_sum(far, weight), total)
    return pull + balance * push


class RankedList(PairLoss):
    """Pulls positives into a ball of radius ``alpha - margin`` around the query, pushes negatives out to ``alpha``.

    Each set is ranked: only non-trivial members count, and nearer negatives weigh more,
    ``w_ij = exp(temperature (alpha - d_ij))``, normalised over the set. ``L_i = L_P + balance L_N`` [RLL 8-14].
    The weights are constants; so are the gallery points (the paper's form) unless ``gallery_gradient=True``.
    ``temperature`` multiplies, as in the paper: the one exception to "temperature divides". 0 weighs all non-trivial
    negatives equally, a large one mines the hardest. RLL 12 prints a sum over |N*|, meant is N*.

    >>> loss = RankedList()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.6142)
    """

    name = "ranked_list"
    limits = {
        "alpha": checks.POSITIVE,
        "margin": checks.NOT_NEGATIVE,
        "temperature": checks.NOT_NEGATIVE,
        "balance": checks.NOT_NEGATIVE,
        "gallery_gradient": (True, False),
    }

    def __init__(
        self,
        *,
        alpha: float = 1.2,
        margin: float = 0.4,
        temperature: float = 10.0,
        balance: float = 1.0,
        gallery_gradient: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self.alpha = alpha
        self.margin = margin
        self.temperature = temperature
        self.balance = balance
        self.gallery_gradient = gallery_gradient
        self.column_gradient = gallery_gradient

    def check_together(self) -> None:
        super().check_together()
        if self.margin > self.alpha:
            raise ValueError(
                f"ranked_list: margin must be at most alpha = {self.alpha:g}, got {self.margin:g}: the ball "
                f"of positives has radius alpha - margin; lower margin or raise alpha."
            )

    @property
    def space(self) -> Space:
        return UNIT_DISTANCE

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return ranked_list(
            matrix,
            mined.positive,
            mined.negative,
            alpha=self.alpha,
            margin=self.margin,
            temperature=self.temperature,
            balance=self.balance,
        )

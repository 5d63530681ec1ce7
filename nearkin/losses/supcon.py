"""Supervised contrastive loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import FAR, Mask, split
from nearkin.reductions import counted_logsumexp, counted_mean


def supcon(similarity: Tensor, positive: Mask, negative: Mask, *, temperature: float = 0.1) -> Tensor:
    """log sum over all pairs of e^(s / temperature) minus the mean of s / temperature over P, of each row; 0 without P."""
    near, p, far, n = split(similarity / temperature, positive, negative, alone=True)
    within = -1 / temperature, 1 / temperature
    mine, others = counted_logsumexp(near, p, within=within), counted_logsumexp(far, n, within=within)
    everything = torch.logaddexp(mine.clamp(min=-FAR), others.clamp(min=-FAR))
    return torch.where(p.sum(1) > 0, everything, torch.zeros_like(everything)) - counted_mean(near, p)


class SupCon(PairLoss):
    """Pulls positives towards the anchor against everything else in the batch (Khosla 2020).

    ``l_i = -1/|P_i| sum_P (s_ip / temperature - log sum_{j != i} e^{s_ij / temperature})``; 0 without positives.

    >>> loss = SupCon()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.0986)
    """

    name = "supcon"
    limits = {"temperature": checks.POSITIVE}

    def __init__(self, *, temperature: float = 0.1, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.temperature = temperature

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return supcon(matrix, mined.positive, mined.negative, temperature=self.temperature)

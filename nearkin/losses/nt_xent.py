"""Normalised temperature-scaled cross-entropy loss."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import FAR, Mask, split
from nearkin.reductions import counted_logsumexp, counted_mean, log1pexp


def nt_xent(similarity: Tensor, positive: Mask, negative: Mask, *, temperature: float = 0.1) -> Tensor:
    """mean over P of -log(e^(s_p / t) / (e^(s_p / t) + sum_N e^(s_k / t))) of each row."""
    near, p, far, n = split(similarity, positive, negative, alone=True)
    against = counted_logsumexp(far / temperature, n, within=(-1 / temperature, 1 / temperature)).clamp(min=-FAR)
    return counted_mean(log1pexp(against[:, None] - near / temperature), p)


class NTXent(PairLoss):
    """Pulls each positive on its own towards the anchor against the negatives.

    ``l_i = 1/|P_i| sum_P -log(e^{s_ip / temperature} / (e^{s_ip / temperature} + sum_N e^{s_ik / temperature}))``.
    Unlike supcon, other positives do not stand in the denominator.

    >>> loss = NTXent()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.0986)
    """

    name = "nt_xent"
    limits = {"temperature": checks.POSITIVE}

    def __init__(self, *, temperature: float = 0.1, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.temperature = temperature

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return nt_xent(matrix, mined.positive, mined.negative, temperature=self.temperature)

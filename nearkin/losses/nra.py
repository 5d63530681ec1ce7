"""Nonlinear rank approximation loss."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask
from nearkin.reductions import extremes
from nearkin.space import RAW_SQUARE, Space, root


def sigmoid_of_rank(rank: Tensor, power: float) -> Tensor:
    """w(r) = (2r)^power / 2 below one half, 1 - (2(1 - r))^power / 2 above: flat at 0 and 1, steep between."""
    low = rank < 0.5
    side = torch.where(low, rank, 1 - rank)
    curve = (2 * side).pow(power) / 2
    return torch.where(low, curve, 1 - curve)


def nra(
    distance: Tensor,
    positive: Mask,
    negative: Mask,
    *,
    power: float = 4.0,
    eps: float = 1e-4,
    range_slack: float = 0.0,
    squared: bool = False,
) -> Tensor:
    """-(log(1 - w(r+) + eps) + log(w(r-) + eps)) of each row [NRA 5-13]; a missing side contributes 0.

    r is the distance scaled to the row's range, r+ at the farthest positive, r- at the nearest negative. Distances may be
    given ``squared``: only four of each row are looked at.
    """
    (low_p, high_p, any_p), (low_n, high_n, any_n) = extremes(distance, positive), extremes(distance, negative)
    # All four at once, so that their gradients fill one matrix, and few steps do for blocks of few rows.
    found = distance.gather(1, torch.stack([low_p, high_p, low_n, high_n], 1))
    found = root(found) if squared else found
    there = torch.stack([any_p, any_n], 1)
    smallest = torch.where(there, found[:, 0::2], math.inf).amin(1)
    largest = torch.where(there, found[:, 1::2], -math.inf).amax(1)
    if range_slack > 0:
        smallest, largest = smallest.detach(), largest.detach()
        slack = range_slack * (largest - smallest)
        smallest, largest = smallest - slack, largest + slack
    spread = (largest - smallest)[:, None]
    reach = found[:, 1:3]  # the farthest positive and the nearest negative
    has = there & (spread > 0) & torch.isfinite(spread)
    # Rows without a range or without this side are computed on harmless numbers and then left out.
    rank = (torch.where(has, reach - smallest[:, None], 0.5) / torch.where(has, spread, 1.0)).clamp(0, 1)
    weight = sigmoid_of_rank(rank, power)
    good = torch.stack([1 - weight[:, 0], weight[:, 1]], 1)
    return torch.where(has, -torch.log(good + eps), 0.0).sum(1)


class NRA(PairLoss):
    """Pulls the farthest positive up the ranking and pushes the nearest negative down. Raw embeddings.

    With the raw distance D and ``r_ij = (D_ij - Dmin_i) / (Dmax_i - Dmin_i)`` as a stand-in for the rank,
    ``l_i = -(log(1 - w(r+) + eps) + log(w(r-) + eps))``, ``w(r) = (2r)^power / 2`` below one half and
    ``1 - (2(1-r))^power / 2`` above [NRA 5-13]. Dmin, Dmax and r are all differentiated.

    If the nearest neighbour is a negative then r- = 0 identically and its term has no gradient (likewise r+ = 1), since
    w is flat there. ``range_slack=0.1`` takes Dmin and Dmax as constants and widens the range by a tenth on both sides,
    which gives these pairs their gradient back; 0 is the paper. Mind that the paper's form does not change when all
    embeddings grow or shrink together, while a range of constants pulls at their scale: in our trials with raw embeddings
    and a slack the scale drifted, and the run failed or ended in one point (``docs/plane.md``).

    >>> loss = NRA()
    >>> loss(torch.tensor([[0.0], [1.0], [3.0], [4.0]]), torch.tensor([0, 0, 1, 1]))
    tensor(0.3983)
    """

    name = "nra"
    limits = {
        "power": checks.Limit(low=1),
        "eps": checks.POSITIVE,
        "range_slack": checks.NOT_NEGATIVE,
    }

    def __init__(
        self, *, power: float = 4.0, eps: float = 1e-4, range_slack: float = 0.0, **common: Unpack[Common]
    ) -> None:
        super().__init__(**common)
        self.power = power
        self.eps = eps
        self.range_slack = range_slack

    @property
    def space(self) -> Space:
        return RAW_SQUARE

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        own = {"power": self.power, "eps": self.eps, "range_slack": self.range_slack}
        return nra(matrix, mined.positive, mined.negative, squared=True, **own)

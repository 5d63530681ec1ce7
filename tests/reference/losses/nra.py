"""Nonlinear rank approximation loss on raw embeddings."""

import torch
from torch import Tensor

from ..samples import Samples


def transfer(r: Tensor, power: float) -> Tensor:
    """w(r) = (2r)^power / 2 for r < 1/2, else 1 - (2(1 - r))^power / 2."""
    if r.item() < 0.5:
        return (2 * r) ** power / 2
    return 1 - (2 * (1 - r)) ** power / 2


def largest(values: list[Tensor]) -> Tensor:
    """The first of the largest values."""
    best = values[0]
    for value in values[1:]:
        if value.item() > best.item():
            best = value
    return best


def smallest(values: list[Tensor]) -> Tensor:
    """The first of the smallest values."""
    best = values[0]
    for value in values[1:]:
        if value.item() < best.item():
            best = value
    return best


def nra(samples: Samples, *, power: float = 4.0, eps: float = 1e-4, range_slack: float = 0.0) -> list[Tensor]:
    """Per-anchor values [NRA 5-13]:

    r_ij = (D_ij - Dmin_i) / (Dmax_i - Dmin_i) over all j of P_i and N_i, clamped to [0, 1];
    l_i = -( log(1 - w(r+) + eps) + log(w(r-) + eps) ), r+ at the farthest positive, r- at the nearest
    negative. With range_slack c > 0: Dmin and Dmax constant, R = Dmax - Dmin, Dmin - c R and Dmax + c R in
    their place. A missing side adds 0; Dmax = Dmin gives 0.
    """
    values = []
    for i in samples.rows:
        positive = [samples.raw_distance(i, j) for j in samples.positive[i]]
        negative = [samples.raw_distance(i, j) for j in samples.negative[i]]
        value = samples.zero()
        if not positive and not negative:
            values.append(value)
            continue
        low, high = smallest(positive + negative), largest(positive + negative)
        if low.item() == high.item():
            values.append(value)
            continue
        if range_slack > 0:
            low, high = low.detach(), high.detach()
            spread = high - low
            low, high = low - range_slack * spread, high + range_slack * spread
        if positive:
            r = torch.clamp((largest(positive) - low) / (high - low), 0.0, 1.0)
            value = value - torch.log(1 - transfer(r, power) + eps)
        if negative:
            r = torch.clamp((smallest(negative) - low) / (high - low), 0.0, 1.0)
            value = value - torch.log(transfer(r, power) + eps)
        values.append(value)
    return values

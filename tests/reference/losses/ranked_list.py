"""Ranked list loss."""

import math
from dataclasses import replace

from torch import Tensor

from ..samples import Samples
from ..scalars import mean


def ranked_list(
    samples: Samples,
    *,
    alpha: float = 1.2,
    margin: float = 0.4,
    temperature: float = 10.0,
    balance: float = 1.0,
    gallery_gradient: bool = False,
) -> list[Tensor]:
    """Per-anchor values [RLL 8-14, (12) summed over N*]:

    P* = {j in P_i : d_ij > alpha - margin}, N* = {j in N_i : d_ij < alpha}, w_ij = exp(T (alpha - d_ij)),
    L_P = mean_{P*} (d_ij - (alpha - margin)), L_N = sum_{N*} (w_ij / sum w) (alpha - d_ij),
    L_i = L_P + balance * L_N. The weights are constants, and so is the gallery unless gallery_gradient.
    """
    if not gallery_gradient:
        samples = replace(samples, gallery=samples.gallery.detach())
    zero = samples.zero()
    values = []
    for i in samples.rows:
        pull = []
        for j in samples.positive[i]:
            d = samples.distance(i, j)
            if d.item() > alpha - margin:
                pull.append(d - (alpha - margin))
        gaps = []
        for j in samples.negative[i]:
            d = samples.distance(i, j)
            if d.item() < alpha:
                gaps.append(alpha - d)
        push = zero
        if gaps:
            hardest = max(gap.item() for gap in gaps)
            weights = [math.exp(temperature * (gap.item() - hardest)) for gap in gaps]
            for weight, gap in zip(weights, gaps, strict=True):
                push = push + weight / sum(weights) * gap
        values.append(mean(pull, zero) + balance * push)
    return values

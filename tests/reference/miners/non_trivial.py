"""The non-trivial pairs of the ranked list loss."""

from ..samples import Samples


def non_trivial(samples: Samples, alpha: float = 1.2, margin: float = 0.4) -> Samples:
    """P* = {j in P_i : d_ij > alpha - margin}, N* = {j in N_i : d_ij < alpha} [RLL 8-9]."""
    positive = []
    negative = []
    for i in samples.rows:
        positive.append([j for j in samples.positive[i] if samples.distance(i, j).item() > alpha - margin])
        negative.append([j for j in samples.negative[i] if samples.distance(i, j).item() < alpha])
    return samples.with_pairs(positive, negative)

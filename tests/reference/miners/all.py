"""Every pair and triplet."""

from ..samples import Samples


def all(samples: Samples) -> Samples:
    """P_i = {j != i : y_j = y_i}, N_i = {j : y_j != y_i}, T = P_i x N_i of every row."""
    positive = [[j for j in samples.others(i) if samples.same(i, j)] for i in samples.rows]
    negative = [[j for j in samples.others(i) if not samples.same(i, j)] for i in samples.rows]
    return samples.with_pairs(positive, negative)

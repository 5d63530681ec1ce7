"""Closed-form pair weights of the unified view, (1 - 2 I_ij) dl_i/ds_ij per row, as column -> weight.

Every function but `triplet` gives N times the signed weight of the mean-reduced loss. A column that is kept c
times has c times its weight; pairs of the sets with weight 0 are listed with 0.
"""

import math

from .miners.vthm import vthm
from .samples import Samples

Row = dict[int, float]


def similarities(samples: Samples, i: int, columns: list[int]) -> list[float]:
    return [samples.cosine(i, j).item() for j in columns]


def add(row: Row, j: int, weight: float) -> None:
    row[j] = row.get(j, 0.0) + weight


def contrastive(samples: Samples, *, margin: float = 0.5) -> list[Row]:
    """[UV 6]: 1 for a positive pair and for a negative pair with s_ij > margin, else 0."""
    result: list[Row] = []
    for i in samples.rows:
        row: Row = {}
        for j in samples.positive[i]:
            add(row, j, 1.0)
        for j in samples.negative[i]:
            add(row, j, 1.0 if samples.cosine(i, j).item() > margin else 0.0)
        result.append(row)
    return result


def triplet(samples: Samples, *, margin: float = 0.1) -> list[Row]:
    """[UV 8], summed over the triplets: 1 for both pairs of a triplet with s_an - s_ap + margin > 0.

    This is |T| times (not N times) the weight of the loss, whose mean runs over the triplets.
    """
    result: list[Row] = [{} for _ in samples.rows]
    for a, p, n in samples.triplet_list():
        active = samples.cosine(a, n).item() - samples.cosine(a, p).item() + margin > 0
        add(result[a], p, 1.0 if active else 0.0)
        add(result[a], n, 1.0 if active else 0.0)
    return result


def lifted_structure(samples: Samples, *, margin: float = 0.5) -> list[Row]:
    """[UV 10-11] (generalized form), the second form of (11) with exp(-(s_ij - s_ik)); 0 where the hinge is
    0.

    Positive: 1 / sum_P e^{s_ij - s_ik}; negative: 1 / sum_N e^{-(s_ij - s_ik)}.
    """
    result: list[Row] = []
    for i in samples.rows:
        row: Row = {}
        positive = similarities(samples, i, samples.positive[i])
        negative = similarities(samples, i, samples.negative[i])
        active = False
        if positive and negative:
            value = math.log(sum(math.exp(margin - s) for s in positive))
            value += math.log(sum(math.exp(s) for s in negative))
            active = value > 0
        for j, s in zip(samples.positive[i], positive, strict=True):
            add(row, j, 1 / sum(math.exp(s - other) for other in positive) if active else 0.0)
        for j, s in zip(samples.negative[i], negative, strict=True):
            add(row, j, 1 / sum(math.exp(-(s - other)) for other in negative) if active else 0.0)
        result.append(row)
    return result


def binomial_deviance(samples: Samples, *, alpha: float = 2.0, beta: float = 50.0, gamma: float = 0.5) -> list[Row]:
    """[UV 13-14]: 1/|P_i| alpha / (1 + e^{-alpha(gamma - s)}), 1/|N_i| beta / (1 + e^{-beta(s - gamma)})."""
    result: list[Row] = []
    for i in samples.rows:
        row: Row = {}
        for j in samples.positive[i]:
            s = samples.cosine(i, j).item()
            add(row, j, alpha / (1 + math.exp(-alpha * (gamma - s))) / len(samples.positive[i]))
        for j in samples.negative[i]:
            s = samples.cosine(i, j).item()
            add(row, j, beta / (1 + math.exp(-beta * (s - gamma))) / len(samples.negative[i]))
        result.append(row)
    return result


def multi_similarity(
    samples: Samples,
    *,
    alpha: float = 2.0,
    beta: float = 50.0,
    gamma: float = 0.5,
    epsilon: float | None = 0.1,
) -> list[Row]:
    """[UV 15-16] on the sets mined by vthm (as given when epsilon is None).

    Positive: 1 / (sum_P~ e^{alpha(s_ij - s_ik)} + e^{alpha(s_ij - gamma)});
    negative: 1 / (sum_N~ e^{-beta(s_ij - s_ik)} + e^{-beta(s_ij - gamma)}).
    """
    mined = samples if epsilon is None else vthm(samples, margin=epsilon)
    result: list[Row] = []
    for i in mined.rows:
        row: Row = {}
        positive = similarities(mined, i, mined.positive[i])
        negative = similarities(mined, i, mined.negative[i])
        for j, s in zip(mined.positive[i], positive, strict=True):
            divisor = sum(math.exp(alpha * (s - other)) for other in positive) + math.exp(alpha * (s - gamma))
            add(row, j, 1 / divisor)
        for j, s in zip(mined.negative[i], negative, strict=True):
            divisor = sum(math.exp(-beta * (s - other)) for other in negative) + math.exp(-beta * (s - gamma))
            add(row, j, 1 / divisor)
        result.append(row)
    return result

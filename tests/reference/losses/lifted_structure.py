"""Lifted structure loss, original and generalized."""

from torch import Tensor

from ..samples import Samples
from ..scalars import hinge, log_sum_exp, mean


def original(samples: Samples, margin: float, normalize: bool) -> Tensor:
    """One value [NRA 3]: 1/(2 #pairs) sum over unordered positive pairs (i, j) of

    ([ log(sum_{N_i} e^{margin - d_ik} + sum_{N_j} e^{margin - d_jl}) + d_ij ]+)^2;
    0 without a positive pair, and a pair without any negative adds 0 to the sum and 1 to #pairs.
    """
    known: dict[tuple[bool, int, int], Tensor] = {}

    def query_distance(i: int, j: int) -> Tensor:
        if (True, i, j) not in known:
            known[True, i, j] = samples.distance(i, j) if normalize else samples.raw_distance(i, j)
        return known[True, i, j]

    def gallery_distance(j: int, k: int) -> Tensor:
        if (False, j, k) not in known:
            measure = samples.gallery_distance if normalize else samples.gallery_raw_distance
            known[False, j, k] = measure(j, k)
        return known[False, j, k]

    zero = samples.zero()
    terms = []
    for i, j in samples.unordered(samples.positive):
        exponents = [margin - query_distance(i, k) for k in samples.negative[i]]
        exponents += [margin - gallery_distance(j, k) for k in samples.negatives_of_column(j)]
        if exponents:
            terms.append(hinge(log_sum_exp(exponents) + query_distance(i, j)) ** 2)
        else:
            terms.append(zero)
    return mean(terms, zero) / 2


def generalized(samples: Samples, margin: float) -> list[Tensor]:
    """Per-anchor values [DD 2.21]: [ log sum_P e^{margin - s_ij} + log sum_N e^{s_ik} ]+.

    0 for an anchor that lacks positives or negatives.
    """
    values = []
    for i in samples.rows:
        if not samples.positive[i] or not samples.negative[i]:
            values.append(samples.zero())
            continue
        pull = log_sum_exp([margin - samples.cosine(i, j) for j in samples.positive[i]])
        push = log_sum_exp([samples.cosine(i, k) for k in samples.negative[i]])
        values.append(hinge(pull + push))
    return values


def lifted_structure(
    samples: Samples, *, form: str = "original", margin: float | None = None, normalize: bool = True
) -> Tensor | list[Tensor]:
    """form="original" (margin 1.0): one value; form="generalized" (margin 0.5): per-anchor values."""
    if form == "original":
        return original(samples, 1.0 if margin is None else margin, normalize)
    if form == "generalized":
        return generalized(samples, 0.5 if margin is None else margin)
    raise ValueError(f"unknown form {form!r}")

"""Normalised temperature cross-entropy."""

from torch import Tensor

from ..samples import Samples
from ..scalars import mean, target_cross_entropy


def nt_xent(samples: Samples, *, temperature: float = 0.1) -> list[Tensor]:
    """Per-anchor values; 0 without positives:

    1/|P_i| sum_P -log( e^{s_ip/temperature} / (e^{s_ip/temperature} + sum_N e^{s_ik/temperature}) ).
    """
    zero = samples.zero()
    values = []
    for i in samples.rows:
        negative = [samples.cosine(i, k) / temperature for k in samples.negative[i]]
        terms = []
        for p in samples.positive[i]:
            terms.append(target_cross_entropy(samples.cosine(i, p) / temperature, negative, zero))
        values.append(mean(terms, zero))
    return values

"""Supervised contrastive loss."""

from torch import Tensor

from ..samples import Samples
from ..scalars import log_sum_exp


def supcon(samples: Samples, *, temperature: float = 0.1) -> list[Tensor]:
    """Per-anchor values (Khosla 2020), j over P_i and N_i; 0 without positives:

    -1/|P_i| sum_P ( s_ip/temperature - log sum_{j != i} e^{s_ij/temperature} ).
    """
    values = []
    for i in samples.rows:
        if not samples.positive[i]:
            values.append(samples.zero())
            continue
        positive = [samples.cosine(i, j) / temperature for j in samples.positive[i]]
        negative = [samples.cosine(i, j) / temperature for j in samples.negative[i]]
        every = log_sum_exp(positive + negative)
        value = samples.zero()
        for s in positive:
            value = value - (s - every) / len(positive)
        values.append(value)
    return values

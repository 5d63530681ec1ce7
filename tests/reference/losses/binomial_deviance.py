"""Binomial deviance loss."""

from torch import Tensor

from ..samples import Samples
from ..scalars import log_one_plus_sum_exp, mean


def binomial_deviance(samples: Samples, *, alpha: float = 2.0, beta: float = 50.0, gamma: float = 0.5) -> list[Tensor]:
    """Per-anchor values [UV 12]: mean_P log(1 + e^{alpha(gamma - s)}) + mean_N log(1 + e^{beta(s -
    gamma)}).
    """
    zero = samples.zero()
    values = []
    for i in samples.rows:
        pull = []
        for j in samples.positive[i]:
            pull.append(log_one_plus_sum_exp([alpha * (gamma - samples.cosine(i, j))], zero))
        push = []
        for j in samples.negative[i]:
            push.append(log_one_plus_sum_exp([beta * (samples.cosine(i, j) - gamma)], zero))
        values.append(mean(pull, zero) + mean(push, zero))
    return values

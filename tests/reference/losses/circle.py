"""Circle loss."""

from torch import Tensor

from ..samples import Samples
from ..scalars import log_one_plus_sum_exp, log_sum_exp


def circle(samples: Samples, *, margin: float = 0.4, scale: float = 80.0) -> list[Tensor]:
    """Per-anchor values (Sun 2020):

    log(1 + sum_N e^{scale a_n (s - margin)} sum_P e^{-scale a_p (s - (1 - margin))}), with the constants
    a_p = [1 + margin - s]+ and a_n = [s + margin]+; 0 if either set is empty.
    """
    zero = samples.zero()
    values = []
    for i in samples.rows:
        if not samples.positive[i] or not samples.negative[i]:
            values.append(zero)
            continue
        pull = []
        for j in samples.positive[i]:
            s = samples.cosine(i, j)
            a_p = max(0.0, 1 + margin - s.item())
            pull.append(-scale * a_p * (s - (1 - margin)))
        push = []
        for j in samples.negative[i]:
            s = samples.cosine(i, j)
            a_n = max(0.0, s.item() + margin)
            push.append(scale * a_n * (s - margin))
        values.append(log_one_plus_sum_exp([log_sum_exp(push) + log_sum_exp(pull)], zero))
    return values

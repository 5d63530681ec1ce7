"""Angular loss."""

import math

from torch import Tensor

from ..samples import Samples
from ..scalars import log_one_plus_sum_exp, mean


def angular(samples: Samples, *, degrees: float = 45.0) -> Tensor:
    """One value (Wang 2017): the mean over the positive pairs (a, p) of

    log(1 + sum_{N_a} e^{4 tan^2(t) (x_a + x_p).x_n - 2 (1 + tan^2 t) x_a.x_p}), t = degrees;
    0 without a positive pair, and a pair without any negative is 0.
    """
    square = math.tan(math.radians(degrees)) ** 2
    zero = samples.zero()
    columns: dict[tuple[int, int], Tensor] = {}
    terms = []
    for a in samples.rows:
        to_negative = {n: samples.cosine(a, n) for n in samples.negative[a]}
        for p in samples.positive[a]:
            s_ap = samples.cosine(a, p)
            exponents = []
            for n in samples.negative[a]:
                if (p, n) not in columns:
                    columns[p, n] = samples.gallery_cosine(p, n)
                both = to_negative[n] + columns[p, n]
                exponents.append(4 * square * both - 2 * (1 + square) * s_ap)
            terms.append(log_one_plus_sum_exp(exponents, zero))
    return mean(terms, zero)

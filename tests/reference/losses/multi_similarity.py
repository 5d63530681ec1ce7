"""Multi-similarity loss, also known as RAW."""

from torch import Tensor

from ..miners.vthm import vthm
from ..samples import Samples
from ..scalars import log_one_plus_sum_exp


def multi_similarity(
    samples: Samples,
    *,
    alpha: float = 2.0,
    beta: float = 50.0,
    gamma: float = 0.5,
    epsilon: float | None = 0.1,
) -> list[Tensor]:
    """Per-anchor values [DD 2.24, UV 17]:

    1/alpha log(1 + sum_P~ e^{-alpha(s - gamma)}) + 1/beta log(1 + sum_N~ e^{beta(s - gamma)}),
    P~ and N~ mined by vthm with margin epsilon; epsilon=None takes the sets as given.
    """
    mined = samples if epsilon is None else vthm(samples, margin=epsilon)
    zero = mined.zero()
    values = []
    for i in mined.rows:
        pull = log_one_plus_sum_exp([-alpha * (mined.cosine(i, j) - gamma) for j in mined.positive[i]], zero)
        push = log_one_plus_sum_exp([beta * (mined.cosine(i, j) - gamma) for j in mined.negative[i]], zero)
        values.append(pull / alpha + push / beta)
    return values

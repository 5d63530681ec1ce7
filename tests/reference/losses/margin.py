"""Margin loss with a learnable boundary."""

from collections.abc import Sequence

from torch import Tensor

from ..samples import Samples
from ..scalars import hinge, total


def margin(samples: Samples, *, margin: float = 0.2, beta: float | Sequence[Tensor] = 1.2) -> Tensor:
    """One value (Wu 2017, [DD 2.23] with I = +1 for positives and -1 for negatives):

    sum over the pairs (with multiplicity) of [margin + I_ij (d_ij - beta_i)]+, divided by the number of
    non-zero terms (a constant); 0 without any. `beta` is one number, or one 0-d tensor per query row.
    """
    betas = [beta] * len(samples.labels) if isinstance(beta, float | int) else list(beta)
    zero = samples.zero()
    terms = []
    for i in samples.rows:
        for j in samples.positive[i]:
            terms.append(hinge(margin + (samples.distance(i, j) - betas[i])))
        for j in samples.negative[i]:
            terms.append(hinge(margin - (samples.distance(i, j) - betas[i])))
    active = sum(1 for term in terms if term.item() > 0)
    return total(terms, zero) / max(active, 1)

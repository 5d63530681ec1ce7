"""Angular loss."""

from __future__ import annotations

import math
from typing import Unpack

from torch import Tensor

from nearkin import checks
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.whole import Whole
from nearkin.pairs import few, take
from nearkin.reductions import counted_logsumexp, ratio


class Angular(PairLoss):
    """Pushes negatives out of the cone around each positive pair (Wang 2017).

    Mean over positive pairs (a, p) of ``log(1 + sum_N e^{4 tan^2(t) (x_a + x_p).x_n - 2 (1 + tan^2 t) x_a.x_p})``, all
    of unit length, N the negatives of a. Not row-wise: it reads the rows of a and of p.

    >>> loss = Angular()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.0986)
    """

    name = "angular"
    limits = {"degrees": checks.Limit(low=0, high=90, low_open=True, high_open=True)}
    rowwise = False
    why = "a term reads the rows of both members of a positive pair"

    def __init__(self, *, degrees: float = 45.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.degrees = degrees

    def whole(self, pairs: Whole) -> Tensor:
        tangent = math.tan(math.radians(self.degrees)) ** 2
        columns, counts = few(pairs.mined.positive, pairs.masks.depth)
        total = pairs.dot[0, 0] * 0
        for k in range(columns.shape[1]):
            partner = columns[:, k]
            together = pairs.dot.gather(1, partner[:, None])
            reach = pairs.matrix + pairs.column_matrix.index_select(0, partner)
            push = 4 * tangent * reach - 2 * (1 + tangent) * together
            term = counted_logsumexp(*take(push, pairs.mined.negative), one=True)
            total = total + (term * counts[:, k] * pairs.anchor_weights).sum()
        return ratio(total, (counts.sum(1) * pairs.anchor_weights).sum())

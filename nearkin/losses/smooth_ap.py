"""Smooth average precision loss."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask, few, split
from nearkin.reductions import count_above, ratio


def smooth_ap(similarity: Tensor, positive: Mask, negative: Mask, *, temperature: float = 0.01, depth: int) -> Tensor:
    """1 - smoothed average precision of each row, one pass over the row per positive; 0 without positives."""
    near, p, far, n = split(similarity, few(positive, depth), negative, alone=True)
    if not near.shape[1]:
        return similarity.sum(1) * 0
    # A positive's comparison with itself, one half, is not part of its rank.
    among = 1 + count_above(near, p, near, temperature) - 0.5 * p
    precision = among / (among + count_above(far, n, near, temperature))
    total = p.sum(1)
    return ratio(total - (precision * p).sum(1), total)


class SmoothAP(PairLoss):
    """Raises the average precision of each query's ranking, ranks smoothed by a sigmoid (Brown 2020).

    ``1 - 1/|P_i| sum_{p in P} (1 + sum_{j in P, j != p} g_jp) / (1 + sum_{j in P, j != p} g_jp + sum_{k in N} g_kp)``,
    ``g_jp = sigmoid((s_ij - s_ip) / temperature)``. The query is not its own positive (the authors count it).

    >>> loss = SmoothAP()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.5000)
    """

    name = "smooth_ap"
    limits = {"temperature": checks.POSITIVE}
    needs_depth = True

    def __init__(self, *, temperature: float = 0.01, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.temperature = temperature

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return smooth_ap(matrix, mined.positive, mined.negative, temperature=self.temperature, depth=sizes.depth)

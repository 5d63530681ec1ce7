"""Recall@k surrogate loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask, few, split
from nearkin.reductions import count_above


def recall_at_k(
    similarity: Tensor,
    positive: Mask,
    negative: Mask,
    *,
    ks: Sequence[int] = (1, 2, 4, 8, 16),
    t1: float = 1.0,
    t2: float = 0.01,
    depth: int,
) -> Tensor:
    """1 - the mean over ks of the smoothed recall@k of each row; 0 without positives."""
    near, p, far, n = split(similarity, few(positive, depth), negative, alone=True)
    if not near.shape[1]:
        return similarity.sum(1) * 0
    # A positive's comparison with itself, one half per count, is not part of its rank.
    among = count_above(near, p, near, t2) - 0.5 * p
    rank = 1 + among + count_above(far, n, near, t2)
    total = p.sum(1)
    # All ks at once: few steps do for blocks of few rows.
    levels = torch.stack([total.new_full((), k) for k in ks])[:, None]
    hits = (torch.sigmoid((levels[:, None] - rank) / t1) * p).sum(2)
    recall = (hits / torch.minimum(total.clamp(min=1), levels)).clamp(max=1).mean(0)
    return torch.where(total > 0, 1 - recall, torch.zeros_like(total))


class RecallAtK(PairLoss):
    """Raises recall@k itself, ranks and the step at k smoothed by sigmoids (Patel 2022).

    ``1 - mean over k of min(1, sum_{p in P} sigmoid((k - r_p) / t1) / min(k, |P_i|))``,
    ``r_p = 1 + sum_{j != p} sigmoid((s_ij - s_ip) / t2)``.

    >>> loss = RecallAtK()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.2705)
    """

    name = "recall_at_k"
    limits = {"t1": checks.POSITIVE, "t2": checks.POSITIVE}
    needs_depth = True

    def __init__(
        self, *, ks: Sequence[int] = (1, 2, 4, 8, 16), t1: float = 1.0, t2: float = 0.01, **common: Unpack[Common]
    ) -> None:
        super().__init__(**common)
        self.ks = tuple(ks)
        self.t1 = t1
        self.t2 = t2

    def check_together(self) -> None:
        super().check_together()
        if not self.ks:
            raise ValueError("recall_at_k: ks must hold at least one k, got none; pass for example ks=(1, 2, 4, 8).")
        for k in self.ks:
            checks.setting(self.name, "ks", k, checks.COUNT)

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return recall_at_k(
            matrix, mined.positive, mined.negative, ks=self.ks, t1=self.t1, t2=self.t2, depth=sizes.depth
        )

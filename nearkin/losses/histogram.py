"""Histogram loss."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from nearkin import checks
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.whole import Whole
from nearkin.reductions import ratio


def histogram(similarity: Tensor, positive: Tensor, negative: Tensor, *, bins: int = 100) -> Tensor:
    """The chance that a random negative pair is at least as similar as a random positive pair, from two histograms
    with linear binning; 0 where either has no pair."""
    position = ((similarity + 1) * (bins / 2)).clamp(0, bins)
    lower = position.detach().nan_to_num(0).floor().clamp(max=bins - 1)
    upper_share = position - lower
    index = lower.long().flatten()

    def spread(mask: Tensor) -> Tensor:
        up = (upper_share * mask).flatten()
        nodes = similarity.new_zeros(bins + 1)
        nodes = nodes.scatter_add(0, index, mask.flatten() - up).scatter_add(0, index + 1, up)
        return ratio(nodes, mask.sum())

    return (spread(negative) * spread(positive).cumsum(0)).sum()


class Histogram(PairLoss):
    """Lowers the chance that a negative pair is more similar than a positive one (Ustinova 2016).

    ``sum_r h-_r sum_{q <= r} h+_q`` with the histograms of negative and positive similarities on [-1, 1] at bins + 1
    nodes, linear binning, each summing to 1. Not row-wise: one pair of histograms for the batch.

    >>> loss = Histogram()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.)
    """

    name = "histogram"
    limits = {"bins": checks.COUNT}
    rowwise = False
    why = "its two histograms are of all pairs of the batch"

    def __init__(self, *, bins: int = 100, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.bins = bins

    def whole(self, pairs: Whole) -> Tensor:
        weights = pairs.anchor_weights[:, None]
        positive, negative = pairs.once(pairs.mined.positive), pairs.once(pairs.mined.negative)
        return histogram(pairs.matrix, positive * weights, negative * weights, bins=self.bins)

"""Triplet loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nearkin import checks, pairs
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.contrastive import raw_needs_distance
from nearkin.miners import Links, Mined


class _AllTriplets(torch.autograd.Function):
    """Sum over all (p, n) of a row of [v_n - v_p + margin]+; the gradient is formed on the way, one positive at a time,
    so that memory stays that of the matrix however many triplets there are."""

    @staticmethod
    def forward(ctx: Any, near: Tensor, positive: Tensor, negative: Tensor, margin: float, depth: int) -> Tensor:
        columns, counts = pairs.counted(positive, depth)
        level = near.gather(1, columns) - margin
        total = near.new_zeros(len(near))
        slope, positive_slope = torch.zeros_like(near), []
        for k in range(columns.shape[1]):
            excess = (near - level[:, k : k + 1]).clamp_(min=0)
            active = pairs.above(excess, 0.0).mul_(negative)
            total += excess.mul_(negative).sum(1) * counts[:, k]
            positive_slope.append(-active.sum(1) * counts[:, k])
            slope.addcmul_(active, counts[:, k : k + 1])
        if positive_slope:
            slope.scatter_add_(1, columns, torch.stack(positive_slope, 1))
        ctx.save_for_backward(slope)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        (slope,) = ctx.saved_tensors
        return slope * grad[:, None], None, None, None, None


def triplet(
    near: Tensor, positive: Tensor, negative: Tensor, *, margin: float = 0.1, depth: int
) -> tuple[Tensor, Tensor]:
    """Sum of [near_n - near_p + margin]+ over all positives p and negatives n of a row, and the number of triplets.

    ``near`` is a similarity, or minus a squared distance; ``depth`` bounds the positives of a row.
    """
    count = positive.sum(1) * negative.sum(1)
    return _AllTriplets.apply(near, positive, negative, margin, depth), count


def triplet_linked(near: Tensor, links: Links, *, margin: float = 0.1) -> tuple[Tensor, Tensor]:
    """The same over the triplets that a miner linked."""
    excess = near.gather(1, links.negative) - near.gather(1, links.positive) + margin
    return pairs.masked_sum(torch.relu(excess), links.negatives), links.negatives.sum(1)


class Triplet(PairLoss):
    """Pushes the negative of each mined triplet at least ``margin`` farther from the anchor than the positive.

    Cosine (default): mean over the triplets of ``[s_an - s_ap + margin]+``, margin 0.1 [DD 2.17, UV 7].
    Euclidean: ``[d_ap^2 - d_an^2 + margin]+``, margin 0.2 [RLL 1, NRA 2]; ``normalize=False`` uses raw embeddings.
    ``miner`` is "semihard" unless set; None takes all triplets, in memory that does not grow with their number.

    >>> loss = Triplet(miner="hard")
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.1000)
    """

    name = "triplet"
    limits = {
        "distance": ("cosine", "euclidean"),
        "margin": checks.NOT_NEGATIVE,
        "normalize": (True, False),
    }
    needs_depth = True

    def __init__(
        self, *, distance: str = "cosine", margin: float | None = None, normalize: bool = True, **common: Unpack[Common]
    ) -> None:
        common.setdefault("miner", "semihard")
        super().__init__(**common)
        self.distance = distance
        self.margin = (0.2 if distance == "euclidean" else 0.1) if margin is None else margin
        self.normalize = normalize

    def check_together(self) -> None:
        super().check_together()
        raw_needs_distance(self.name, self.distance, self.normalize)

    @property
    def space(self) -> pairs.Space:
        return pairs.Space(unit=self.normalize, distance=self.distance == "euclidean")

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> tuple[Tensor, Tensor]:
        near = -matrix.square() if self.distance == "euclidean" else matrix
        if mined.links is not None:
            return triplet_linked(near, mined.links, margin=self.margin)
        return triplet(near, mined.positive, mined.negative, margin=self.margin, depth=sizes.depth)

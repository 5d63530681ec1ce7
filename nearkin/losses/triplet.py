"""Triplet loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.derivatives import once
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.contrastive import raw_needs_distance
from nearkin.miners import Mined
from nearkin.pairs import Few, Mask, above, few, split
from nearkin.reductions import counted_sum
from nearkin.space import Space


class _AllTriplets(torch.autograd.Function):
    """Sum over all (p, n) of a row of [far_n - near_p + margin]+; the gradient is formed on the way, one positive at a
    time, so that memory stays that of the matrix however many triplets there are."""

    @staticmethod
    def forward(ctx: Any, near: Tensor, p: Tensor, far: Tensor, n: Tensor, margin: float) -> Tensor:
        level = near - margin
        total = far.new_zeros(len(far))
        near_slope, far_slope = torch.zeros_like(near), torch.zeros_like(far)
        for k in range(near.shape[1]):
            excess = (far - level[:, k : k + 1]).clamp_(min=0)
            active = above(excess, 0.0).mul_(n)
            total = total + excess.mul_(n).sum(1) * p[:, k]
            near_slope[:, k] = -active.sum(1) * p[:, k]
            far_slope.addcmul_(active, p[:, k : k + 1])
        ctx.save_for_backward(near_slope, far_slope)
        return total

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor, None, None]:
        near_slope, far_slope = ctx.saved_tensors
        return near_slope * grad[:, None], None, far_slope * grad[:, None], None, None


def triplet(
    closeness: Tensor, positive: Mask, negative: Mask, *, margin: float = 0.1, depth: int
) -> tuple[Tensor, Tensor]:
    """Sum of [c_n - c_p + margin]+ over all positives p and negatives n of a row, and the number of triplets.

    ``closeness`` is a similarity, or minus a squared distance; ``depth`` bounds the positives of a row.
    """
    near, p, far, n = split(closeness, few(positive, depth), negative)
    return _AllTriplets.apply(near, p, far, n, margin), p.sum(1) * n.sum(1)


def triplet_linked(closeness: Tensor, positive: Few, negative: Few, *, margin: float = 0.1) -> tuple[Tensor, Tensor]:
    """The same over the triplets that a miner linked: those whose positive and negative both count."""
    near, p, far, n = split(closeness, positive, negative)
    count = n * torch.sign(p)
    return counted_sum(torch.relu(far - near + margin), count), count.sum(1)


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
    def space(self) -> Space:
        return Space(unit=self.normalize, distance=self.distance == "euclidean")

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> tuple[Tensor, Tensor]:
        closeness = -matrix.square() if self.distance == "euclidean" else matrix
        positive, negative, linked = mined
        if linked and isinstance(positive, Few) and isinstance(negative, Few):
            return triplet_linked(closeness, positive, negative, margin=self.margin)
        return triplet(closeness, positive, negative, margin=self.margin, depth=sizes.depth)

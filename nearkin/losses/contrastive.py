"""Contrastive loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask, split
from nearkin.reductions import counted_sum
from nearkin.space import Space


def contrastive(similarity: Tensor, positive: Mask, negative: Mask, *, margin: float = 0.5) -> Tensor:
    """sum_P (1 - s) + sum_N [s - margin]+ of each row [DD 2.15, UV 5]."""
    near, p, far, n = split(similarity, positive, negative, alone=True)
    return counted_sum(1 - near, p) + counted_sum(torch.relu(far - margin), n)


def contrastive_euclidean(distance: Tensor, positive: Mask, negative: Mask, *, margin: float = 1.0) -> Tensor:
    """sum_P d^2 + sum_N ([margin - d]+)^2 of each row [NRA 1]."""
    near, p, far, n = split(distance, positive, negative, alone=True)
    return counted_sum(near.square(), p) + counted_sum(torch.relu(margin - far).square(), n)


class Contrastive(PairLoss):
    """Pulls every positive pair together, pushes negatives apart until they are ``margin`` away.

    Cosine (default): ``l_i = sum_P (1 - s_ij) + sum_N [s_ij - margin]+``, margin 0.5 [DD 2.15, UV 5].
    Euclidean: ``l_i = sum_P d_ij^2 + sum_N ([margin - d_ij]+)^2``, margin 1.0 [NRA 1]; ``normalize=False`` uses raw
    embeddings. The loss is the mean over anchors (the sources print sums; UV writes -s for 1 - s).

    >>> loss = Contrastive(margin=0.5)
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.)
    """

    name = "contrastive"
    limits = {
        "distance": ("cosine", "euclidean"),
        "margin": checks.ANY,
        "normalize": (True, False),
    }

    def __init__(
        self, *, distance: str = "cosine", margin: float | None = None, normalize: bool = True, **common: Unpack[Common]
    ) -> None:
        super().__init__(**common)
        self.distance = distance
        self.margin = (1.0 if distance == "euclidean" else 0.5) if margin is None else margin
        self.normalize = normalize

    def check_together(self) -> None:
        super().check_together()
        raw_needs_distance(self.name, self.distance, self.normalize)

    @property
    def space(self) -> Space:
        return Space(unit=self.normalize, distance=self.distance == "euclidean")

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        function = contrastive_euclidean if self.distance == "euclidean" else contrastive
        return function(matrix, mined.positive, mined.negative, margin=self.margin)


def raw_needs_distance(name: str, distance: str, normalize: bool) -> None:
    """Cosines are of unit vectors by definition; only distances exist for raw embeddings."""
    if not normalize and distance != "euclidean":
        raise ValueError(
            f"{name}: normalize=False needs distance='euclidean', got {distance!r}; "
            f"set distance='euclidean' or leave normalize at True."
        )

"""Mean average precision of points in the plane, every point asking for the others, nearest first.

`nearkin.evaluation` ranks by cosine. Points in the plane are compared by their distance, as the figure shows them; so the
ranking is made here, in float64, some rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin import checks
from nearkin.vectors import unit

ROWS = 256  # queries at a time: 256 x 10,000 distances and their order stay below 100 MB


@dataclass(frozen=True)
class Ranking:
    """What each query got: ``average_precision`` and ``first`` (1 where its nearest neighbour is of its class), (n,).

    Both are NaN for a point that is alone in its class.
    """

    average_precision: Tensor
    first: Tensor

    @property
    def mean(self) -> float:
        """Mean average precision over the points that have kin."""
        return float(self.average_precision.nanmean())

    @property
    def recall(self) -> float:
        """recall@1 over the points that have kin."""
        return float(self.first.nanmean())


def rank(points: Tensor, labels: Tensor, *, by_angle: bool = False) -> Ranking:
    """Rank all other points by their distance from each; equal distances keep the order of the rows.

    Average precision is the mean, over the points of the query's class, of the share of that class among all points up
    to there. ``by_angle`` brings the points to length 1 first, so that only their direction from the origin counts.

    >>> points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.5, 0.0], [9.0, 0.0]])
    >>> found = rank(points, torch.tensor([0, 0, 1, 1]))
    >>> [round(value, 4) for value in found.average_precision.tolist()], found.recall
    ([1.0, 0.5, 0.3333, 1.0], 0.5)
    """
    checks.vectors("points", points, least=2)
    checks.labels("labels", labels, len(points), "points", points.device)
    if not bool(points.isfinite().all()):
        raise ValueError("points must be finite, got NaN or infinity; train with a lower lr.")
    wide = unit(points.double()) if by_angle else points.double()
    places = torch.arange(1, len(wide), dtype=torch.float64, device=wide.device)
    precision, first = [], []
    for start in range(0, len(wide), ROWS):
        block = wide[start : start + ROWS]
        # Differences, not a product of matrices: copies of a point are then equally far, to the last bit.
        distance = sum((block[:, k, None] - wide[None, :, k]).square() for k in range(wide.shape[1]))
        assert isinstance(distance, Tensor)
        own = torch.arange(len(block), device=wide.device)
        distance[own, start + own] = -1.0  # the query itself comes first and is left out
        order = distance.argsort(dim=1, stable=True)[:, 1:]
        kin = (labels[order] == labels[start : start + ROWS, None]).double()
        share = kin.cumsum(1) / places
        count = kin.sum(1)
        precision.append((share * kin).sum(1) / count)  # 0 / 0 is NaN: nothing was asked for
        first.append(torch.where(count > 0, kin[:, 0], torch.nan))
    return Ranking(torch.cat(precision), torch.cat(first))

"""How the classes lie in the plane: what the paper says of its figure in words, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin import checks


@dataclass(frozen=True)
class Shape:
    """``centers`` (classes, 2): the median point of each class; ``radius`` (classes,): the median distance to it.

    Medians, because a few digits that lie with another class must not move a centre or swell a radius.
    """

    centers: Tensor
    radius: Tensor

    @property
    def tightness(self) -> float:
        """Mean, over the classes, of radius through distance to the nearest other centre: below 1/2, discs do not meet."""
        gaps = torch.cdist(self.centers, self.centers)
        gaps.fill_diagonal_(torch.inf)
        return float((self.radius / gaps.min(1).values).mean())

    @property
    def ratio(self) -> float:
        """The largest radius through the smallest: 1 where all classes take equal room."""
        return float(self.radius.max() / self.radius.min())


def shape(points: Tensor, labels: Tensor, classes: int) -> Shape:
    """Centre and radius of every class, in float64.

    >>> found = shape(torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0], [9.0, 9.0]]), torch.tensor([0, 0, 0, 1]), 2)
    >>> found.centers.tolist(), found.radius.tolist()
    ([[1.0, 0.0], [9.0, 9.0]], [1.0, 0.0])
    """
    checks.vectors("points", points)
    checks.labels("labels", labels, len(points), "points", points.device)
    centers, radius = [], []
    for label in range(classes):
        own = points[labels == label].double()
        if not len(own):
            raise ValueError(
                f"labels must hold every class from 0 to {classes - 1}, got none of class {label}; draw more points."
            )
        center = own.quantile(0.5, dim=0)
        centers.append(center)
        radius.append((own - center).norm(dim=1).quantile(0.5))
    return Shape(torch.stack(centers), torch.stack(radius))


def rank_correlation(one: Tensor, other: Tensor) -> float:
    """Spearman's: 1 where two lists of different numbers are in the same order, -1 where in the opposite.

    >>> rank_correlation(torch.tensor([1.0, 5.0, 2.0]), torch.tensor([10.0, 12.0, 11.0]))
    1.0
    """
    places = torch.stack([values.double().argsort().argsort().double() for values in (one, other)])
    return float(torch.corrcoef(places)[0, 1])

"""Additive angular margin."""

import math

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import COINCIDENT, target_cross_entropy, unit_vector


def with_margin(cosine: Tensor, degrees: float) -> Tensor:
    """cos(theta + m) = cos theta cos m - sin theta sin m; where theta + m > pi: cos theta - m sin m.

    m is degrees in radians; sin theta has gradient 0 where sin^2 theta is at most 1e-12.
    """
    m = math.radians(degrees)
    theta = math.acos(min(1.0, max(-1.0, cosine.item())))
    if theta + m > math.pi:
        return cosine - m * math.sin(m)
    square = 1 - cosine * cosine
    sine = torch.sqrt(square) if square.item() > COINCIDENT else torch.sqrt(torch.relu(square.detach()))
    return cosine * math.cos(m) - sine * math.sin(m)


def arcface(samples: Samples, proxies: Tensor, *, degrees: float = 28.6, scale: float = 64.0) -> list[Tensor]:
    """Per-anchor values [DD 2.29], unit x and w:

    -log e^{s cos(theta_y + m)} / (e^{s cos(theta_y + m)} + sum_{j != y} e^{s cos theta_j}), m = degrees,
    s = scale.
    """
    zero = samples.zero()
    weights = [unit_vector(w) for w in proxies]
    values = []
    for i in samples.rows:
        cosines = [torch.dot(samples.unit(i), w) for w in weights]
        target = scale * with_margin(cosines.pop(samples.labels[i]), degrees)
        values.append(target_cross_entropy(target, [scale * c for c in cosines], zero))
    return values

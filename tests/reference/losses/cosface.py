"""Additive cosine margin."""

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import target_cross_entropy, unit_vector


def cosface(samples: Samples, proxies: Tensor, *, margin: float = 0.35, scale: float = 64.0) -> list[Tensor]:
    """Per-anchor values (Wang 2018): cross-entropy over scale cos theta_j, the target scale (cos theta_y -
    margin).
    """
    zero = samples.zero()
    weights = [unit_vector(w) for w in proxies]
    values = []
    for i in samples.rows:
        cosines = [torch.dot(samples.unit(i), w) for w in weights]
        target = scale * (cosines.pop(samples.labels[i]) - margin)
        values.append(target_cross_entropy(target, [scale * c for c in cosines], zero))
    return values

"""Additive angular margin with several centres per class."""

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import target_cross_entropy, unit_vector
from .arcface import with_margin


def sub_center_arcface(
    samples: Samples,
    proxies: Tensor,
    *,
    centers: int | None = None,
    degrees: float = 28.6,
    scale: float = 64.0,
) -> list[Tensor]:
    """Per-anchor values (Deng 2020): arcface on cos theta_c = max_k x.w_c^k (ties: lowest k).

    `proxies` is (classes, centers, dim), which says the number of centres; `centers` only checks it.
    """
    if centers is not None and centers != proxies.shape[1]:
        raise ValueError("the proxies have another number of centres")
    zero = samples.zero()
    weights = [[unit_vector(w) for w in group] for group in proxies]
    values = []
    for i in samples.rows:
        cosines = []
        for group in weights:
            best = torch.dot(samples.unit(i), group[0])
            for w in group[1:]:
                cosine = torch.dot(samples.unit(i), w)
                if cosine.item() > best.item():
                    best = cosine
            cosines.append(best)
        target = scale * with_margin(cosines.pop(samples.labels[i]), degrees)
        values.append(target_cross_entropy(target, [scale * c for c in cosines], zero))
    return values

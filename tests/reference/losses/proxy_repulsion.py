"""Proxy anchor with repulsion between the proxies."""

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import log_one_plus_sum_exp, mean, unit_vector
from .proxy_anchor import attraction


def proxy_repulsion(
    samples: Samples, proxies: Tensor, *, variant: int = 1, scale: float = 32.0, margin: float = 0.1
) -> Tensor:
    """One value: first term of proxy_anchor + 1/|W| sum_w log(1 + sum_{w' != w} e^{a(k(w, w') + margin)}),

    variant 1 [DD 6.1]: k = w.w'; variant 2 [DD 6.2]: k = sum_{x in batch} (w.x)(x.w'); a = scale, all unit
    vectors.
    """
    if variant not in (1, 2):
        raise ValueError(f"unknown variant {variant!r}")
    zero = samples.zero()
    weights = [unit_vector(w) for w in proxies]
    cosines = [[torch.dot(samples.unit(i), w) for i in samples.rows] for w in weights] if variant == 2 else []
    terms = []
    for c in range(len(weights)):
        exponents = []
        for other in range(len(weights)):
            if other == c:
                continue
            if variant == 1:
                similarity = torch.dot(weights[c], weights[other])
            else:
                similarity = zero
                for i in samples.rows:
                    similarity = similarity + cosines[c][i] * cosines[other][i]
            exponents.append(scale * (similarity + margin))
        terms.append(log_one_plus_sum_exp(exponents, zero))
    return attraction(samples, proxies, scale, margin) + mean(terms, zero)

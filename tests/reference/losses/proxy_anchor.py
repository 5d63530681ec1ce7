"""Proxy anchor loss."""

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import log_one_plus_sum_exp, mean, unit_vector


def attraction(samples: Samples, proxies: Tensor, scale: float, margin: float) -> Tensor:
    """1/|W+| sum_{w in W+} log(1 + sum_{X+_w} e^{-a(s - margin)}), W+ = the proxies with a sample in the
    batch.
    """
    zero = samples.zero()
    terms = []
    for c, w in enumerate(proxies):
        members = [i for i in samples.rows if samples.labels[i] == c]
        if members:
            cosines = [torch.dot(samples.unit(i), unit_vector(w)) for i in members]
            terms.append(log_one_plus_sum_exp([-scale * (s - margin) for s in cosines], zero))
    return mean(terms, zero)


def proxy_anchor(samples: Samples, proxies: Tensor, *, scale: float = 32.0, margin: float = 0.1) -> Tensor:
    """One value [DD 2.31]: `attraction` + 1/|W| sum_W log(1 + sum_{X-_w} e^{a(s + margin)}), a = scale."""
    zero = samples.zero()
    terms = []
    for c, w in enumerate(proxies):
        strangers = [i for i in samples.rows if samples.labels[i] != c]
        cosines = [torch.dot(samples.unit(i), unit_vector(w)) for i in strangers]
        terms.append(log_one_plus_sum_exp([scale * (s + margin) for s in cosines], zero))
    return attraction(samples, proxies, scale, margin) + mean(terms, zero)

"""Histogram loss."""

import math

from torch import Tensor

from ..samples import Samples


def soft_histogram(similarities: list[Tensor], bins: int, zero: Tensor) -> list[Tensor]:
    """Linear binning at the nodes t_r = -1 + 2 r / bins, r = 0..bins, divided by the number of values."""
    nodes = [zero for _ in range(bins + 1)]
    for s in similarities:
        position = (s + 1) * bins / 2
        r = min(max(math.floor(position.item()), 0), bins - 1)
        nodes[r] = nodes[r] + (r + 1 - position) / len(similarities)
        nodes[r + 1] = nodes[r + 1] + (position - r) / len(similarities)
    return nodes


def histogram(samples: Samples, *, bins: int = 100) -> Tensor:
    """One value (Ustinova 2016): sum_r h-_r sum_{q <= r} h+_q over unordered pairs; 0 if either kind is
    missing.
    """
    zero = samples.zero()
    positive = [samples.cosine(i, j) for i, j in samples.unordered(samples.positive)]
    negative = [samples.cosine(i, j) for i, j in samples.unordered(samples.negative)]
    if not positive or not negative:
        return zero
    h_positive = soft_histogram(positive, bins, zero)
    h_negative = soft_histogram(negative, bins, zero)
    value, cumulative = zero, zero
    for r in range(bins + 1):
        cumulative = cumulative + h_positive[r]
        value = value + h_negative[r] * cumulative
    return value

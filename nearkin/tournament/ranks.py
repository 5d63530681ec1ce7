"""The rank of each loss in each experiment, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Means over runs that differ by less are equal: sums in another order differ by rounding.
SAME = 1e-9


def ranks(scores: ArrayLike) -> NDArray[np.float64]:
    """Ranks along the last axis, 1 for the highest score; equal scores share the mean of their ranks.

    >>> ranks([[60.3, 57.6, 62.9], [0.5, 0.7, 0.5]])
    array([[2. , 3. , 1. ],
           [2.5, 1. , 2.5]])
    """
    values = np.asarray(scores, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("scores must be finite numbers, got some that are not; leave out what has no score.")
    difference = values[..., None, :] - values[..., :, None]
    equal = np.abs(difference) <= SAME * np.maximum(1.0, np.abs(values[..., None]))
    greater = (difference > 0) & ~equal
    return 1 + greater.sum(-1) + (equal.sum(-1) - 1) / 2


@dataclass(frozen=True)
class Ranking:
    """Ranks of k losses in n experiments.

    >>> ranking = Ranking.of(("contrastive", "triplet"), [[60.3, 57.6], [62.6, 60.5]])
    >>> ranking.total, ranking.mean, ranking.deviation
    (array([2., 4.]), array([1., 2.]), array([0., 0.]))
    """

    labels: tuple[str, ...]
    ranks: NDArray[np.float64]  # (n, k)

    @classmethod
    def of(cls, labels: Sequence[str], scores: ArrayLike) -> Ranking:
        """From scores (n, k), higher is better."""
        values = np.asarray(scores, np.float64)
        if values.ndim != 2 or values.shape[1] != len(labels):
            raise ValueError(
                f"scores must have shape (experiments, {len(labels)}), one column per loss, got {values.shape}; "
                f"pass one row per experiment."
            )
        return cls(tuple(labels), ranks(values))

    @property
    def total(self) -> NDArray[np.float64]:
        return np.asarray(self.ranks.sum(0))

    @property
    def mean(self) -> NDArray[np.float64]:
        return np.asarray(self.ranks.mean(0))

    @property
    def deviation(self) -> NDArray[np.float64]:
        """The sample standard deviation; not a number with one experiment."""
        if len(self.ranks) < 2:
            return np.full(len(self.labels), np.nan)
        return np.asarray(self.ranks.std(0, ddof=1))

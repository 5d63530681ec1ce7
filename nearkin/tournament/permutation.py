"""Is one loss better than another on the same queries? Paired permutation tests, corrected for their number.

If two losses were equally good, each test class might as well have gone the other way round: the sign of its difference
is flipped. Whole classes are flipped, since the queries of one class are not independent. Scores are averaged over seeds
first: runs are not fresh test data.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FLIPS = 20_000
LEVEL = 0.05


def sign_flip(sums: NDArray[np.float64], *, flips: int = FLIPS, seed: int = 0) -> NDArray[np.float64]:
    """Two-sided p-values (k, k) of every pair of losses, from ``sums`` (k, classes) of scores over each class's queries.

    Exact, by all patterns of signs, where there are at most ``flips`` of them (14 classes); else from random patterns,
    counting the observed one, so that p is never 0.

    >>> sign_flip(np.array([[8.0, 7, 9, 6, 8, 9], [5.0, 4, 7, 4, 4, 8]]))
    array([[1.     , 0.03125],
           [0.03125, 1.     ]])
    """
    values = np.asarray(sums, np.float64)
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(
            f"sums must have shape (losses, classes), got {values.shape}; "
            f"average over seeds and add up the scores of the queries of each class."
        )
    if not np.isfinite(values).all():
        raise ValueError("sums must be finite numbers, got some that are not; leave out queries that have no score.")
    losses, classes = values.shape
    whole = values.sum(1)
    # Sums in another order differ by rounding; they must count as equal.
    bound = np.abs(whole[:, None] - whole) - 1e-9 * max(1.0, float(np.abs(values).sum(1).max()))
    exact = is_exact(classes, flips)
    reached = np.zeros((losses, losses), np.int64)
    count = 0
    for signs in _all_signs(classes) if exact else _random_signs(classes, flips, seed):
        totals = signs @ values.T
        for one in range(losses):
            reached[one] += (np.abs(totals[:, one, None] - totals) >= bound[one]).sum(0)
        count += len(signs)
    p = reached / count if exact else (1 + reached) / (1 + count)
    np.fill_diagonal(p, 1.0)
    return np.asarray(p)


def is_exact(classes: int, flips: int = FLIPS) -> bool:
    """Whether ``sign_flip`` goes through all patterns."""
    return 2**classes <= flips if classes < 62 else False


def least_classes(losses: int, level: float = LEVEL) -> int:
    """How many test classes it takes that some of so many losses can be told apart at all.

    Of 2^n patterns of signs, the observed one and its opposite are the least that reach what was observed, and Holm's method
    takes the least p times the number of pairs.

    >>> least_classes(2), least_classes(16)
    (6, 13)
    """
    pairs = losses * (losses - 1) // 2
    return next(classes for classes in itertools.count(1) if 2 ** (1 - classes) * pairs < level)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """p-values (n,) corrected for their number by Holm's step-down method.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, np.float64)
    wrong = values[~((values >= 0) & (values <= 1))]
    if len(wrong):
        raise ValueError(f"p must lie between 0 and 1, got {wrong[0]:g}; pass p-values as shares.")
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    out = np.empty_like(values)
    out[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return out


def holm_pairs(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """A symmetric matrix of p-values with every pair corrected for the number of pairs."""
    above = np.triu_indices(len(p), 1)
    out = np.ones_like(p)
    out[above] = holm(p[above])
    return np.minimum(out, out.T)


def _all_signs(classes: int) -> Iterator[NDArray[np.float64]]:
    for start in range(0, 2**classes, 4096):
        patterns = np.arange(start, min(start + 4096, 2**classes))[:, None] >> np.arange(classes)
        yield _signs(patterns & 1)


def _random_signs(classes: int, flips: int, seed: int) -> Iterator[NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    step = max(1, min(flips, 4_000_000 // classes))  # at most 32 MB at a time
    for start in range(0, flips, step):
        count = min(step, flips - start)
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(count * -(-classes // 8)), np.uint8).reshape(count, -1), axis=1
        )
        yield _signs(bits[:, :classes])


def _signs(bits: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    return 1.0 - 2.0 * bits.astype(np.float64)

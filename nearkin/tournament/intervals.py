"""Intervals for the mean score of each loss and for every difference, from test classes and runs drawn anew.

Queries of one class resemble each other, so whole classes are drawn, the same for every loss; the network depends on its
seed, so runs are drawn too (the pigeonhole bootstrap of Owen, 2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from nearkin.tournament.distributions import stats

RESAMPLES = 10_000
COVERAGE = 0.95
HELD = 4_000_000  # numbers in memory at a time: 32 MB


@dataclass(frozen=True)
class Intervals:
    """Mean score (k,) with bounds, and differences (k, k), row minus column, with bounds."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    difference: NDArray[np.float64]
    difference_low: NDArray[np.float64]
    difference_high: NDArray[np.float64]


def bootstrap(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    paired: bool = False,
    coverage: float = COVERAGE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Intervals:
    """Intervals from ``sums`` (losses, runs, classes) of the scores of each class's queries, ``sizes`` (classes,) of them.

    ``paired``: the runs are folds, and those of different losses that train on the same classes belong together; else the
    runs of each loss are drawn on their own. With one run, only classes are drawn.

    The percentiles of the resampled means give the shape of an interval. Its width is corrected, since a bootstrap of few
    runs is too narrow and one of runs and classes at once counts the chance of single answers three times: it is scaled to
    reach at least t standard errors to each side on average, by the variance and degrees of freedom of ``spread``.

    >>> sums = np.array([[[8.0, 7, 9, 6, 8]], [[5.0, 4, 7, 4, 4]]])
    >>> found = bootstrap(sums, np.full(5, 10.0))
    >>> found.mean.round(2), bool(found.difference_low[0, 1] > 0)
    (array([0.76, 0.48]), True)
    """
    values, weights = np.asarray(sums, np.float64), np.asarray(sizes, np.float64)
    if values.ndim != 3 or weights.shape != values.shape[2:]:
        raise ValueError(
            f"sums must have shape (losses, runs, classes) and sizes (classes,), got {values.shape} and "
            f"{weights.shape}; add up the scores of the queries of each class."
        )
    if not np.isfinite(values).all() or not np.isfinite(weights).all():
        raise ValueError(
            "sums and sizes must be finite numbers, got some that are not; leave out queries that have no score."
        )
    losses, runs, classes = values.shape
    if classes < 2:
        raise ValueError("an interval needs at least 2 test classes, got 1; test on more classes.")
    mean = values.sum((1, 2)) / (runs * weights.sum())
    variance, freedom = spread(values, weights, paired)
    drawn = np.zeros((resamples, losses + 1))  # the last column stands for nothing: a mean is its difference from it
    drawn[:, :losses] = _drawn(values, weights, paired, resamples, seed) - mean
    tail = (1 - coverage) / 2
    z = NormalDist().inv_cdf(1 - tail)
    reach = stats().t.ppf(1 - tail, freedom) * np.sqrt(variance)
    low, high = np.zeros((losses, losses + 1)), np.zeros((losses, losses + 1))
    for one in range(losses):
        gaps = drawn[:, one, None] - drawn
        below, above = np.quantile(gaps, (tail, 1 - tail), axis=0)
        half = np.minimum(
            z * gaps.std(0), (above - below) / 2
        )  # few runs have no tails: the half width says less than z
        scale = np.divide(reach[one], half, out=np.zeros_like(half), where=half > 1e-15)
        low[one], high[one] = scale * below, scale * above
    difference = mean[:, None] - mean
    bounds = mean + low[:, -1], mean + high[:, -1]
    apart = difference + low[:, :-1], difference + high[:, :-1]
    if (values >= 0).all() and (values <= weights * (1 + 1e-9)).all():
        # Scores are shares, and so is every mean of them, however wide few runs make an interval.
        bounds, apart = tuple(np.clip(bounds, 0, 1)), tuple(np.clip(apart, -1, 1))
    return Intervals(mean, *bounds, difference, *apart)


def spread(
    values: NDArray[np.float64], sizes: NDArray[np.float64], paired: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Variance and degrees of freedom, each (losses, losses + 1): of every difference, and of each mean in the last column.

    The variance of a mean over classes and runs is that between classes plus that between runs, less that of single
    answers, which is in both (a two-way analysis of variance); degrees of freedom by Satterthwaite. Two or three runs may
    lie close together by chance; so the variance between unpaired runs of a loss counts at least as much as that of all
    losses on average. The average over many losses is known well; that of two is mostly the larger one over again, and
    brings no degrees of freedom of its own.

    Folds (``paired``) share most of their training classes, so that their spread says too little of other classes. Of k
    folds the variance of the mean is not 1/k but 1/k + 1/(k - 1) of that between them, the second part being the classes
    kept back over those that train (Nadeau and Bengio, Inference for the Generalization Error, 2003).
    """
    losses, runs, classes = values.shape
    mean = values.sum((1, 2)) / (runs * sizes.sum())
    # What each class in each run adds to the error of the ratio of sums.
    cells = (values - mean[:, None, None] * sizes) / sizes.mean()
    by_class = _gaps(_products(cells.mean(1)) / (classes * (classes - 1)))
    by_run, by_cell, squares = (np.zeros_like(by_class) for _ in range(3))
    if runs > 1:
        own = cells.mean(2)
        rest = cells - cells.mean(1, keepdims=True) - own[:, :, None]
        between_runs = _products(own) / (runs * (runs - 1))
        within = _products(rest.reshape(losses, -1)) / ((runs - 1) * (classes - 1) * runs * classes)
        if paired:
            by_run, by_cell = _gaps(between_runs) * (1 + runs / (runs - 1)), _gaps(within)
            squares = by_run**2 / (runs - 1)
        else:
            by_cell = _gaps(np.diag(within.diagonal()))
            by_run, squares = _lifted(between_runs.diagonal(), runs)
    variance = np.maximum(np.maximum(by_class, by_run), by_class + by_run - by_cell)
    weighed = by_class**2 / (classes - 1) + squares
    whole = (by_class + by_run) ** 2
    freedom = np.divide(whole, weighed, out=np.full_like(whole, classes - 1.0), where=weighed > 0)
    return variance, freedom


def _lifted(own: NDArray[np.float64], runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The variance between runs of every difference, each loss lifted to the average of all, and for Satterthwaite its
    square over its degrees of freedom."""
    average = own.mean()
    raised = own <= average * (1 + 1e-9)
    by_run = _gaps(np.diag(np.maximum(own, average)))
    alone = np.where(raised, 0.0, own**2 / (runs - 1))
    often = np.append(raised, False).astype(np.float64)
    shared = raised[:, None] + often  # how many of the two are the same average
    squares = alone[:, None] + np.append(alone, 0.0) + (shared * average) ** 2 / (len(own) * (runs - 1))
    if len(own) == 2:  # 1.5 times the larger one and half of the smaller one
        squares[[0, 1], [1, 0]] = ((1.5 * own.max()) ** 2 + (0.5 * own.min()) ** 2) / (runs - 1)
    return by_run, np.where(by_run > 0, squares, 0.0)


def difference_p(values: NDArray[np.float64], sizes: NDArray[np.float64], paired: bool = False) -> NDArray[np.float64]:
    """Two-sided p-values (losses, losses) of the differences by their standard errors over classes and runs.

    >>> sums = np.array([[[8.0, 7, 9, 6, 8], [7.0, 7, 9, 6, 9]], [[5.0, 4, 7, 4, 4], [5.0, 4, 6, 5, 5]]])
    >>> bool(difference_p(sums, np.full(5, 10.0))[0, 1] < 0.05)
    True
    """
    losses, runs, _ = values.shape
    mean = values.sum((1, 2)) / (runs * sizes.sum())
    variance, freedom = (table[:, :losses] for table in spread(values, sizes, paired))
    gap = np.abs(mean[:, None] - mean)
    error = np.sqrt(variance)
    p = 2 * stats().t.sf(np.divide(gap, error, out=np.zeros_like(gap), where=error > 0), freedom)
    p[(error == 0) & (gap > 0)] = 0.0  # no spread at all, yet a difference
    return np.asarray(p)


def _products(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(table @ table.T)


def _gaps(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance of every difference, and of each alone in the last column, from covariances (k, k)."""
    alone = covariance.diagonal()
    between = np.maximum(0.0, alone[:, None] + alone - 2 * covariance)
    np.fill_diagonal(between, 0.0)
    return np.concatenate([between, alone[:, None]], 1)


def _drawn(
    values: NDArray[np.float64], sizes: NDArray[np.float64], paired: bool, resamples: int, seed: int
) -> NDArray[np.float64]:  # means (resamples, losses)
    losses, runs, classes = values.shape
    generator = np.random.default_rng(seed)
    flat = np.concatenate([values.reshape(losses * runs, classes), sizes[None]]).T
    out = np.empty((resamples, losses))
    step = max(1, min(resamples, HELD // classes))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        # How often each class is drawn, all resamples of this step in one go.
        picks = generator.integers(classes, size=(count, classes)) + classes * np.arange(count)[:, None]
        counts = np.bincount(picks.ravel(), minlength=count * classes).reshape(count, classes).astype(np.float64)
        totals = counts @ flat
        scores = (totals[:, :-1] / totals[:, -1:]).reshape(count, losses, runs)
        each = (count, 1 if paired else losses)
        shares = generator.multinomial(runs, np.full(runs, 1 / runs), size=each) / runs
        out[start : start + count] = (scores * shares).sum(2)
    return out

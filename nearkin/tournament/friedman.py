"""Do losses differ over several experiments, and by how much must mean ranks differ to be told apart?

The Friedman test with the F distribution of Iman and Davenport, and Nemenyi's critical difference, as Demsar
(Statistical Comparisons of Classifiers over Multiple Data Sets, 2006) recommends; Wilcoxon's signed-rank test for two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearkin.tournament.distributions import stats
from nearkin.tournament.permutation import sign_flip
from nearkin.tournament.ranks import ranks

LEVEL = 0.05
# Below this many experiments the F distribution is a poor approximation, and p comes from reordering the ranks.
FEW = 10
REORDERINGS = 20_000


@dataclass(frozen=True)
class Friedman:
    """The outcome for n experiments and k losses.

    - ``p``: the value to judge by, from ``method``: "F", "reordering" (below ten experiments) or "wilcoxon" (two losses);
    - ``statistic`` is Friedman's chi-square, corrected for ties, ``statistic_p`` its p-value; ``f`` is Iman and
      Davenport's F with k - 1 and (k - 1)(n - 1) degrees of freedom, ``f_p`` its p-value (not numbers for two losses);
    - ``difference``: Nemenyi's critical difference of mean ranks; not a number for two losses;
    - ``apart`` (k, k): which losses are told apart.
    """

    experiments: int
    p: float
    method: str
    statistic: float
    statistic_p: float
    f: float
    f_p: float
    difference: float
    mean_ranks: NDArray[np.float64]
    apart: NDArray[np.bool_]
    level: float = LEVEL

    @property
    def significant(self) -> bool:
        return self.p < self.level


def friedman(scores: ArrayLike, level: float = LEVEL, seed: int = 0) -> Friedman:
    """Compare k losses by their scores (n, k) in n experiments; higher is better.

    Losses are told apart where the test is significant and their mean ranks differ by more than the critical difference.
    The experiments are taken for independent of each other; two networks on one data set are not quite.

    >>> scores = [[0.61, 0.58, 0.55], [0.64, 0.60, 0.61], [0.58, 0.55, 0.54], [0.62, 0.59, 0.57], [0.70, 0.66, 0.65]]
    >>> outcome = friedman(scores)
    >>> round(outcome.statistic, 2), round(outcome.difference, 2), outcome.apart[0].tolist()
    (8.4, 1.48, [False, False, True])
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] < 2:
        raise ValueError(
            f"scores must hold at least 2 experiments of at least 2 losses, got shape {values.shape}; "
            f"a Friedman test needs several experiments: compare one with bootstrap and sign_flip."
        )
    placed = ranks(values)
    n, k = placed.shape
    mean = placed.mean(0)
    if k == 2:
        return _two(values, mean, level, seed)
    statistic = friedman_statistic(placed)
    if statistic == 0:
        statistic_p, f, f_p = 1.0, 0.0, 1.0
    else:
        # SciPy ranks scores anew: ranks are given to it, so that scores equal up to rounding are ties for it too.
        statistic, statistic_p = (float(number) for number in stats().friedmanchisquare(*(-placed).T))
        f, f_p = iman_davenport(statistic, n, k, orders(placed[0]))
    method = "F" if n >= FEW else "reordering"
    p = f_p if n >= FEW else reordering(placed, seed)
    difference = critical_difference(k, n, level)
    apart = (np.abs(mean[:, None] - mean) > difference) & (p < level)
    return Friedman(n, p, method, statistic, statistic_p, f, f_p, difference, mean, apart, level)


def critical_difference(losses: int, experiments: int, level: float = LEVEL) -> float:
    """Nemenyi's critical difference of mean ranks, q sqrt(k (k + 1) / (6 n)), q from the studentized range.

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    if losses < 2 or experiments < 1:
        raise ValueError(
            f"a critical difference needs at least 2 losses and 1 experiment, got {losses} and {experiments}; "
            f"compare more losses."
        )
    q = float(stats().studentized_range.ppf(1 - level, losses, np.inf)) / math.sqrt(2)
    return q * math.sqrt(losses * (losses + 1) / (6 * experiments))


def iman_davenport(statistic: float, experiments: int, losses: int, agreed: int | None = None) -> tuple[float, float]:
    """Iman and Davenport's F and its p-value from Friedman's chi-square; less conservative than chi-square itself.

    Where every experiment gives the same ranks F is infinite, and p the chance that all fall in with the first: one in
    ``agreed``, the ``orders`` of those ranks, for each of them; without it, there are no ties.
    """
    room = experiments * (losses - 1) - statistic
    if room <= 1e-9 * statistic:
        return math.inf, float(agreed or math.factorial(losses)) ** -(experiments - 1)
    f = (experiments - 1) * statistic / room
    return f, float(stats().f.sf(f, losses - 1, (losses - 1) * (experiments - 1)))


def orders(placed: ArrayLike) -> int:
    """In how many ways the ranks of one experiment can be dealt out: equal ones are not told from each other.

    >>> orders([1, 2, 3]), orders([1.5, 1.5, 3])
    (6, 3)
    """
    found = np.unique(np.asarray(placed), return_counts=True)[1]
    return math.factorial(int(found.sum())) // math.prod(math.factorial(int(ties)) for ties in found)


def friedman_statistic(placed: NDArray[np.float64]) -> float:
    """Friedman's chi-square of ranks (..., n, k), corrected for ties; 0 where all are tied."""
    return float(_statistics(placed[None])[0])


def _statistics(placed: NDArray[np.float64]) -> NDArray[np.float64]:
    n, k = placed.shape[-2:]
    centre = (k + 1) / 2
    between = ((placed.sum(-2) - n * centre) ** 2).sum(-1)
    within = ((placed - centre) ** 2).sum((-2, -1)) / (k - 1)
    return np.asarray(np.divide(between, within, out=np.zeros_like(between), where=within > 0))


def reordering(placed: NDArray[np.float64], seed: int = 0, times: int = REORDERINGS) -> float:
    """p-value of Friedman's statistic by shuffling the ranks within each experiment; right for few experiments too."""
    generator = np.random.default_rng(seed)
    observed = friedman_statistic(placed)
    reached = 0
    for start in range(0, times, 2000):
        count = min(2000, times - start)
        shuffled = generator.permuted(np.broadcast_to(placed, (count, *placed.shape)), axis=-1)
        reached += int((_statistics(shuffled) >= observed - 1e-9).sum())
    return (1 + reached) / (1 + times)


def _two(values: NDArray[np.float64], mean: NDArray[np.float64], level: float, seed: int) -> Friedman:
    """Wilcoxon's signed-rank test, exact by all patterns of signs up to 14 experiments, ties in size included."""
    change = np.round(values[:, 0] - values[:, 1], 9)
    change = change[change != 0]
    signed = np.sign(change) * ranks(-np.abs(change))
    p = float(sign_flip(np.stack([signed, np.zeros_like(signed)]), seed=seed)[0, 1]) if len(change) else 1.0
    apart = np.array([[False, p < level], [p < level, False]])
    none = math.nan
    return Friedman(len(values), p, "wilcoxon", none, none, none, none, none, mean, apart, level)

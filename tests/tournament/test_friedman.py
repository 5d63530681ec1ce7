"""The Friedman test and the critical difference against a textbook, SciPy and scikit-posthocs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from nearkin.tournament import critical_difference, friedman, ranks
from nearkin.tournament.friedman import friedman_statistic, iman_davenport, reordering
from tests.tournament import demsar


def scores(experiments: int, losses: int, seed: int = 0, step: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return step * np.arange(losses) + rng.standard_normal((experiments, losses))


def test_demsar_mean_ranks_and_f() -> None:
    """The paper's chi-square, 9.28, and F, 3.69, have no correction for ties."""
    outcome = friedman(demsar.SCORES)
    assert outcome.mean_ranks.tolist() == pytest.approx(demsar.MEAN_RANKS, abs=6e-4)
    n, k = demsar.SCORES.shape
    plain = 12 * n / (k * (k + 1)) * ((outcome.mean_ranks**2).sum() - k * (k + 1) ** 2 / 4)
    assert round(plain, 2) == 9.28
    f, p = iman_davenport(plain, n, k)
    assert round(f, 2) == 3.69
    assert p == pytest.approx(stats.f.sf(f, 3, 39))
    assert outcome.statistic > plain
    assert outcome.method == "F"


@pytest.mark.parametrize("level", [0.05, 0.10])
def test_demsar_table_of_q(level: float) -> None:
    for losses, q in enumerate(demsar.Q[level], 2):
        found = critical_difference(losses, 6, level) / math.sqrt(losses * (losses + 1) / 36)
        assert found == pytest.approx(q, abs=1.1e-3), losses


def test_demsar_critical_differences() -> None:
    assert round(critical_difference(4, 14, 0.05), 2) == 1.25
    assert round(critical_difference(4, 14, 0.10), 2) == 1.12
    assert not friedman(demsar.SCORES, 0.05).apart.any()  # 3.143 - 1.964 is less than 1.25
    assert np.argwhere(np.triu(friedman(demsar.SCORES, 0.10).apart)).tolist() == [[0, 1], [0, 3]]  # as the paper finds


@pytest.mark.parametrize("seed", range(4))
def test_statistic_and_p_are_those_of_scipy(seed: int) -> None:
    table = np.round(scores(12, 5, seed), seed)  # rounded, so that there are ties
    outcome, (statistic, p) = friedman(table), stats.friedmanchisquare(*table.T)
    assert outcome.statistic == pytest.approx(statistic)
    assert outcome.statistic_p == pytest.approx(p)
    assert friedman_statistic(ranks(table)) == pytest.approx(statistic)


def test_nemenyi_agrees_with_scikit_posthocs() -> None:
    posthocs = pytest.importorskip("scikit_posthocs", reason="needs scikit-posthocs")
    seen = set()
    for seed in range(5):
        table = scores(12, 5, seed)
        p = posthocs.posthoc_nemenyi_friedman(table).to_numpy()
        assert (friedman(table).apart == (p < 0.05)).all()
        seen |= set((p < 0.05).ravel().tolist())
    assert seen == {True, False}


def test_few_experiments_are_judged_by_reordering() -> None:
    """Against every order of every experiment but the first."""
    table = scores(3, 3, 5, step=2)
    placed = ranks(table)
    observed = friedman_statistic(placed)
    orders = list(itertools.permutations((1.0, 2.0, 3.0)))
    every = [friedman_statistic(np.array(rows)) for rows in itertools.product(orders, repeat=3)]
    exact = np.mean(np.array(every) >= observed - 1e-9)
    assert 0.01 < exact < 0.6
    outcome = friedman(table)
    assert outcome.method == "reordering"
    assert outcome.p == pytest.approx(exact, abs=0.01)
    assert outcome.p == reordering(placed)


def test_reordering_agrees_with_f_for_many() -> None:
    table = scores(30, 4, 1, step=0.15)
    assert reordering(ranks(table)) == pytest.approx(friedman(table).f_p, abs=0.01)


def test_perfect_agreement_of_two_experiments_is_one_chance_in_all_orders() -> None:
    outcome = friedman([[3, 2, 1.0], [0.3, 0.2, 0.1]])
    assert outcome.f == math.inf
    assert outcome.f_p == pytest.approx(1 / 6)
    assert outcome.p == pytest.approx(1 / 6, abs=0.01)
    assert not outcome.apart.any()


@pytest.mark.parametrize("first", [(1, 2, 3), (1.5, 1.5, 3), (1, 2.5, 2.5), (1.5, 1.5, 3.5, 3.5), (2, 2, 2, 4)])
@pytest.mark.parametrize("experiments", [2, 3])
def test_perfect_agreement_with_ties_is_rarer_the_more_orders_there_are(
    first: tuple[float, ...], experiments: int
) -> None:
    """Against every way to deal out the ranks of every experiment."""
    dealt = list(itertools.permutations(first))
    observed = friedman_statistic(np.array([first] * experiments))
    every = [friedman_statistic(np.array([first, *rows])) for rows in itertools.product(dealt, repeat=experiments - 1)]
    exact = np.mean(np.array(every) >= observed - 1e-9)
    outcome = friedman(-np.array([first] * experiments))
    assert outcome.f == math.inf
    assert outcome.f_p == pytest.approx(exact)


def test_ten_experiments_that_agree_on_a_tie() -> None:
    outcome = friedman([[2, 2, 1.0]] * 10)
    assert outcome.method == "F" and outcome.p == pytest.approx(3.0**-9)


def test_all_equal_is_no_difference() -> None:
    outcome = friedman(np.ones((12, 3)))
    assert (outcome.statistic, outcome.p, outcome.apart.any()) == (0, 1, False)


@pytest.mark.parametrize("experiments", [5, 9, 14])
def test_two_losses_are_compared_by_wilcoxon(experiments: int) -> None:
    table = scores(experiments, 2, experiments)
    outcome = friedman(table)
    assert outcome.method == "wilcoxon"
    assert outcome.p == pytest.approx(stats.wilcoxon(table[:, 0], table[:, 1], method="exact").pvalue)
    assert math.isnan(outcome.difference)


def test_two_equal_losses() -> None:
    assert friedman(np.ones((4, 2))).p == 1


def test_no_significance_no_groups() -> None:
    """Mean ranks may differ by more than the critical difference only where the test as a whole finds something."""
    outcome = friedman(np.random.default_rng(80).random((12, 6)))
    assert np.ptp(outcome.mean_ranks) > outcome.difference
    assert not outcome.significant
    assert not outcome.apart.any()


def test_one_experiment_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"at least 2 experiments of at least 2 losses, got shape \(1, 3\); "):
        friedman([[1, 2, 3]])


@pytest.mark.parametrize(("losses", "experiments"), [(1, 5), (3, 0)])
def test_one_loss_differs_from_nothing(losses: int, experiments: int) -> None:
    with pytest.raises(
        ValueError,
        match=rf"^a critical difference needs at least 2 losses and 1 experiment, got {losses} and {experiments}; "
        r"compare more losses\.$",
    ):
        critical_difference(losses, experiments)

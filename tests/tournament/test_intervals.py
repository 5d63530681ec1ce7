"""Intervals against plain loops and textbook formulas, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nearkin.tournament import bootstrap
from nearkin.tournament.intervals import _drawn, difference_p, spread
from nearkin.tournament.permutation import holm_pairs, sign_flip


def drawn(seed: int, classes: int, runs: int, kinds: float, luck: float, noise: float) -> np.ndarray:
    """Mean score of each class, (2, runs, classes), of two losses with means 0.6 and 0.55."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(0, kinds, classes), rng.normal(0, 0.7 * kinds, (2, 1, classes))
    chance = rng.normal(0, luck, (2, runs, 1)) + rng.normal(0, noise, (2, runs, classes))
    return np.array([0.6, 0.55])[:, None, None] + shared + own + chance


@pytest.mark.parametrize(
    ("luck", "kinds", "runs", "least", "most"),
    [
        ((0.1, 0.1), 0.2, 2, 0.04, 0.06),
        ((0.1, 0.1), 0.2, 3, 0.04, 0.06),
        ((0.02, 0.3), 0.05, 2, 0.08, 0.11),
        ((0.02, 0.3), 0.05, 3, 0.045, 0.066),
        ((0.005, 0.25), 0.05, 2, 0.09, 0.12),
        ((0.005, 0.25), 0.05, 3, 0.05, 0.07),
        ((0.005, 0.25), 0.05, 5, 0.015, 0.04),
        ((0.02, 0.02, 0.6), 0.05, 2, 0.08, 0.11),
        ((0.02, 0.02, 0.6), 0.05, 3, 0.04, 0.06),
        ((0.02, 0.02, 0.02, 0.6), 0.05, 2, 0.08, 0.11),
        ((0.02, 0.02, 0.02, 0.6), 0.05, 3, 0.03, 0.05),
    ],
)
def test_equal_losses_are_called_different_as_often_as_the_page_says(
    luck: tuple[float, ...], kinds: float, runs: int, least: float, most: float
) -> None:
    """Two runs say little about luck in training, most of all where that of one loss is much larger than that of another."""
    rng, wrong, tries = np.random.default_rng(0), 0, 2000
    sizes = np.full(100, 30.0)
    for number in range(tries):
        shared, own = rng.normal(0, 0.8, 100), rng.normal(0, kinds, (len(luck), 1, 100))
        chance = rng.normal(0, 1, (len(luck), runs, 1)) * np.reshape(luck, (-1, 1, 1))
        skill = shared + own + chance + rng.normal(0, min(kinds, 0.1), (len(luck), runs, 100))
        sums = rng.binomial(30, 1 / (1 + np.exp(-skill))).astype(float)
        alone = np.maximum(sign_flip(sums.mean(1), flips=500, seed=number), difference_p(sums, sizes))
        wrong += (holm_pairs(alone) < 0.05).any()
    assert least < wrong / tries < most


@pytest.mark.parametrize(
    ("gap", "runs", "least", "most"),
    [(0.02, 2, 0.36, 0.48), (0.02, 3, 0.59, 0.71), (0.03, 2, 0.57, 0.69), (0.03, 3, 0.88, 0.96), (0.02, 5, 0.81, 0.92)],
)
def test_how_often_the_better_of_two_losses_is_found(gap: float, runs: int, least: float, most: float) -> None:
    """Half a point of luck in training; classes differ between losses by 3.1 points and between runs by 4.4, as those of
    benchmarks/results/birds.tar.xz do."""
    rng, found, tries, sizes = np.random.default_rng(0), 0, 500, np.full(100, 50.0)
    for number in range(tries):
        own, luck = rng.normal(0, 0.031, (2, 1, 100)), rng.normal(0, 0.005, (2, runs, 1))
        sums = 50 * (0.6 + own + luck + rng.normal(0, 0.044, (2, runs, 100)) + np.reshape([gap, 0], (2, 1, 1)))
        found += max(sign_flip(sums.mean(1), flips=500, seed=number)[0, 1], difference_p(sums, sizes)[0, 1]) < 0.05
    assert least < found / tries < most


def test_the_mean_is_that_over_all_queries_and_runs() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 30, 12)
    answers = [[[rng.random(size) for size in sizes] for _ in range(3)] for _ in range(2)]
    sums = np.array([[[part.sum() for part in run] for run in loss] for loss in answers])
    expected = [np.mean([np.concatenate(run).mean() for run in loss]) for loss in answers]
    found = bootstrap(sums, sizes.astype(float), resamples=200)
    assert found.mean == pytest.approx(expected)
    assert found.difference[0, 1] == pytest.approx(expected[0] - expected[1])


@pytest.mark.parametrize("paired", [True, False])
def test_resampling_is_that_of_plain_loops(paired: bool) -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(5, 30, 15).astype(float)
    sums = drawn(1, 15, 3, 0.1, 0.05, 0.02) * sizes
    plain = []
    for _ in range(4000):
        classes = rng.integers(15, size=15)
        runs = [rng.integers(3, size=3)] * 2 if paired else [rng.integers(3, size=3) for _ in range(2)]
        plain.append([sums[loss][runs[loss]][:, classes].sum() / (3 * sizes[classes].sum()) for loss in range(2)])
    expected, found = np.array(plain), _drawn(sums, sizes, paired, 4000, 0)
    assert found.mean(0) == pytest.approx(expected.mean(0), abs=0.004)
    for quantity in (np.cov(expected.T), np.cov(found.T)):
        assert quantity.shape == (2, 2)
    assert np.cov(found.T) == pytest.approx(np.cov(expected.T), rel=0.12)
    gaps = [np.quantile(table[:, 0] - table[:, 1], (0.025, 0.975)) for table in (expected, found)]
    assert gaps[0] == pytest.approx(gaps[1], abs=0.008)


def test_with_one_run_and_equal_classes_the_width_is_students() -> None:
    scores = drawn(3, 200, 1, 0.1, 0, 0.05)
    found = bootstrap(scores * 20, np.full(200, 20.0))
    for gap, low, high in (
        (scores[0, 0], found.low[0], found.high[0]),
        (scores[0, 0] - scores[1, 0], found.difference_low[0, 1], found.difference_high[0, 1]),
    ):
        expected = stats.t.interval(0.95, 199, gap.mean(), stats.sem(gap))
        assert (low, high) == pytest.approx(expected, abs=0.003)


def test_variance_is_that_of_a_two_way_analysis() -> None:
    """Mean squares in plain loops."""
    runs, classes = 4, 9
    scores = drawn(5, classes, runs, 0.1, 0.05, 0.03)
    variance, freedom = spread(scores * 7, np.full(classes, 7.0), paired=True)
    gap = scores[0] - scores[1]
    mean = gap.mean()
    ms_class = runs * sum((gap[:, c].mean() - mean) ** 2 for c in range(classes)) / (classes - 1)
    ms_run = classes * sum((gap[r].mean() - mean) ** 2 for r in range(runs)) / (runs - 1)
    rest = sum(
        (gap[r, c] - gap[r].mean() - gap[:, c].mean() + mean) ** 2 for r in range(runs) for c in range(classes)
    ) / ((runs - 1) * (classes - 1))
    ms_run *= (1 / runs + 1 / (runs - 1)) * runs  # folds: Nadeau and Bengio's correction
    assert variance[0, 1] == pytest.approx((ms_class + ms_run - rest) / (runs * classes))
    assert freedom[0, 1] == pytest.approx(
        (ms_class + ms_run) ** 2 / (ms_class**2 / (classes - 1) + ms_run**2 / (runs - 1))
    )


def test_folds_are_compared_as_by_the_corrected_t_test() -> None:
    """Classes that do not differ: Nadeau and Bengio's t, whose test part over its training part is 1/9 for ten folds."""
    luck = np.random.default_rng(0).normal(0, 0.02, 10)
    scores = np.stack([0.53 + luck, np.full(10, 0.5)])[:, :, None].repeat(30, 2)
    gap = scores[0, :, 0] - scores[1, :, 0]
    t = gap.mean() / np.sqrt((1 / 10 + 1 / 9) * gap.var(ddof=1))
    assert difference_p(scores, np.ones(30), paired=True)[0, 1] == pytest.approx(2 * stats.t.sf(t, 9))


def test_equally_lucky_losses_are_compared_as_by_students_test() -> None:
    """Where classes do not differ and every loss has the same spread, the test is the t-test with pooled variance."""
    luck = np.random.default_rng(0).normal(0, 0.02, 4)
    scores = np.stack([0.5 + luck, 0.53 - luck, 0.56 + luck[::-1]])[:, :, None].repeat(30, 2)
    variance, freedom = spread(scores, np.ones(30))
    assert freedom[0, 1] == pytest.approx(3 * 3)
    assert variance[0, 1] == pytest.approx(2 * luck.var(ddof=1) / 4)
    student = stats.ttest_ind(scores[0, :, 0], scores[1, :, 0])
    p = difference_p(scores, np.ones(30))[0, 1]
    assert p == pytest.approx(2 * stats.t.sf(abs(student.statistic), 9))


def test_two_losses_alone_get_no_freedom_from_their_average() -> None:
    """Satterthwaite's for 1.5 times the larger variance and half of the smaller one."""
    luck = np.random.default_rng(0).normal(0, 0.02, 4)
    for times, weights in ((1, (1.5, 0.5)), (3, (1.5, 0.5 / 9)), (1e9, (1.5, 0))):
        scores = np.stack([0.5 + luck, 0.53 + luck / times])[:, :, None].repeat(30, 2)
        variance, freedom = spread(scores, np.ones(30))
        assert variance[0, 1] == pytest.approx(sum(weights) * luck.var(ddof=1) / 4)
        assert freedom[0, 1] == freedom[1, 0] == pytest.approx(3 * sum(weights) ** 2 / np.square(weights).sum())


def test_an_unlucky_loss_keeps_its_own_variance_and_a_steady_one_is_lifted() -> None:
    luck = np.random.default_rng(0).normal(0, 0.02, 4)
    scores = np.stack([0.5 + 3 * luck, 0.5 + 0 * luck])[:, :, None].repeat(30, 2)
    variance, _ = spread(scores, np.ones(30))
    own = 9 * luck.var(ddof=1) / 4
    assert variance[:, -1].tolist() == pytest.approx([own, own / 2])
    assert variance[0, 1] == pytest.approx(1.5 * own)


def test_p_below_a_twentieth_is_an_interval_without_zero() -> None:
    for trial in range(40):
        scores, sizes = drawn(trial, 60, 3, 0.05, 0.01, 0.05), np.full(60, 20.0)
        p = difference_p(scores * sizes, sizes)[0, 1]
        found = bootstrap(scores * sizes, sizes, resamples=2000)
        if abs(p - 0.05) > 0.02:
            assert (found.difference_low[0, 1] > 0) == (p < 0.05)


def test_no_spread_at_all() -> None:
    assert difference_p(np.ones((2, 2, 5)), np.ones(5))[0, 1] == 1
    scores = np.ones((2, 2, 5)) * np.array([0.5, 0.6])[:, None, None]
    assert difference_p(scores, np.ones(5))[0, 1] < 1e-9


@pytest.mark.parametrize(
    ("classes", "runs", "luck", "noise"),
    [(100, 1, 0.0, 0.05), (100, 3, 0.01, 0.05), (60, 3, 0.03, 0.05), (12, 3, 0.01, 0.05)],
)
def test_nineteen_of_twenty_intervals_hold_the_truth(classes: int, runs: int, luck: float, noise: float) -> None:
    rng = np.random.default_rng(classes)
    hits = []
    for trial in range(250):
        sizes = rng.integers(5, 60, classes).astype(float)
        found = bootstrap(drawn(trial, classes, runs, 0.1, luck, noise) * sizes, sizes, resamples=400)
        hits.append(
            (
                found.low[0] <= 0.6 <= found.high[0],
                found.difference_low[0, 1] <= 0.05 <= found.difference_high[0, 1],
            )
        )
    assert (np.mean(hits, axis=0) > 0.9).all(), np.mean(hits, axis=0)
    assert (np.mean(hits, axis=0) < 0.995).all(), np.mean(hits, axis=0)


def test_three_seeds_without_the_correction_would_hold_it_too_rarely() -> None:
    """What the scaling is for: luck in training is most of the error."""
    plain, corrected = 0, 0
    for trial in range(200):
        scores, sizes = drawn(trial, 60, 3, 0.02, 0.03, 0.02), np.full(60, 20.0)
        means = _drawn(scores * sizes, sizes, False, 400, trial)
        low, high = np.quantile(means[:, 0] - means[:, 1], (0.025, 0.975))
        found = bootstrap(scores * sizes, sizes, resamples=400)
        plain += low <= 0.05 <= high
        corrected += bool(found.difference_low[0, 1] <= 0.05 <= found.difference_high[0, 1])
    assert plain < 175 < 184 <= corrected


def test_differences_are_antisymmetric_and_a_loss_equals_itself() -> None:
    scores = drawn(0, 20, 3, 0.1, 0.02, 0.05)
    found = bootstrap(np.concatenate([scores, scores[:1]]), np.ones(20), paired=True, resamples=500)
    assert found.difference_low == pytest.approx(-found.difference_high.T)
    assert found.difference_low[0, 0] == found.difference_high[0, 0] == 0
    assert found.difference_low[0, 2] == pytest.approx(0)  # a copy with the same runs


def test_the_same_seed_gives_the_same() -> None:
    scores = drawn(0, 20, 3, 0.1, 0.02, 0.05)
    one, two, three = (bootstrap(scores, np.ones(20), resamples=300, seed=seed).low[0] for seed in (1, 1, 2))
    assert one == two != three


def test_errors_are_one_sentence() -> None:
    with pytest.raises(
        ValueError, match=r"sums must have shape \(losses, runs, classes\) and sizes \(classes,\), got "
    ):
        bootstrap(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ValueError, match=r"an interval needs at least 2 test classes, got 1; test on more classes\."):
        bootstrap(np.ones((2, 3, 1)), np.ones(1))
    for sums, sizes in ((np.nan, 1.0), (1.0, np.inf)):
        with pytest.raises(
            ValueError,
            match=r"^sums and sizes must be finite numbers, got some that are not; "
            r"leave out queries that have no score\.$",
        ):
            bootstrap(np.full((2, 3, 4), sums), np.full(4, sizes))


def test_an_interval_of_shares_stays_between_nothing_and_all() -> None:
    """Two runs that differ much make a wide interval, but no share is below 0 or above 1."""
    sums = np.array([[[0.0, 0, 1], [3.0, 4, 5]], [[9.0, 9, 10], [10.0, 8, 10]]])
    found = bootstrap(sums, np.full(3, 10.0))
    assert found.low.min() == 0 and found.high.max() == 1
    assert found.difference_low.min() == -1 and found.difference_high.max() == 1
    free = bootstrap(sums - 20, np.full(3, 10.0))  # no shares
    assert free.low.min() < -2

"""Permutation tests against plain loops and SciPy, Holm's correction against statsmodels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from nearkin.tournament import holm, sign_flip
from nearkin.tournament.permutation import holm_pairs, is_exact
from tests.tournament.made import scores_of


def class_sums(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.array([[row[labels == label].sum() for label in np.unique(labels)] for row in scores])


def test_few_classes_are_tested_exactly() -> None:
    sums = np.random.default_rng(0).integers(0, 9, (3, 7)).astype(float)
    p = sign_flip(sums)
    for one, other in itertools.combinations(range(3), 2):
        change = sums[one] - sums[other]
        flipped = [abs(np.dot(signs, change)) for signs in itertools.product((1, -1), repeat=7)]
        exact = np.mean(np.array(flipped) >= abs(change.sum()))
        assert p[one, other] == p[other, one] == exact


def test_it_is_scipys_test_of_paired_samples() -> None:
    sums = np.random.default_rng(1).standard_normal((2, 10))
    expected = stats.permutation_test(
        (sums[0] - sums[1],), np.sum, permutation_type="samples", n_resamples=2000, alternative="two-sided"
    )
    assert sign_flip(sums)[0, 1] == pytest.approx(expected.pvalue)


def test_random_flips_agree_with_all() -> None:
    sums = np.random.default_rng(2).standard_normal((3, 12))
    exact, drawn = sign_flip(sums), sign_flip(sums, flips=4000)
    assert is_exact(12) and not is_exact(12, 4000)
    assert np.abs(exact - drawn).max() < 0.025
    assert np.abs(exact - drawn).max() > 0


def test_the_same_seed_gives_the_same_and_another_seed_another() -> None:
    sums = np.random.default_rng(2).standard_normal((2, 30))
    assert sign_flip(sums, seed=3)[0, 1] == sign_flip(sums, seed=3)[0, 1] != sign_flip(sums, seed=4)[0, 1]


def test_equal_losses_are_never_told_apart_and_p_is_never_zero() -> None:
    sums = np.tile(np.arange(1.0, 31), (2, 1))
    assert sign_flip(sums)[0, 1] == 1
    sums[0] += 10
    assert sign_flip(sums, flips=999)[0, 1] == 1 / 1000


def test_errors_of_the_first_kind_are_as_rare_as_promised_with_dependent_queries() -> None:
    """Two equal losses, queries of a class alike: by class 5 in 100 are found apart, by query far more."""
    rng = np.random.default_rng(0)
    by_class, by_query = [], []
    for _ in range(400):
        odds = rng.normal(0, 1, (2, 24))[:, np.repeat(np.arange(24), 20)]
        right = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)
        by_class.append(sign_flip(class_sums(right, np.repeat(np.arange(24), 20)), flips=400)[0, 1])
        by_query.append(stats.wilcoxon(right[0] - right[1], method="approx").pvalue)
    rate = np.mean(np.array(by_class) < 0.05)
    assert 0.025 < rate < 0.08
    assert np.mean(np.array(by_query) < 0.05) > 0.3


def test_a_real_difference_is_found() -> None:
    scores, labels = scores_of(np.random.default_rng(0), (1.0, 0.3), 1, 60)
    assert sign_flip(class_sums(scores[:, 0], labels))[0, 1] < 0.001


def test_holm_is_that_of_statsmodels() -> None:
    multipletests = pytest.importorskip("statsmodels.stats.multitest", reason="needs statsmodels").multipletests
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 45):
        p = rng.random(count) ** 4
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.02, 0.6]).tolist() == pytest.approx([0.03, 0.04, 0.6])
    assert holm([0.5, 0.4]).tolist() == pytest.approx([0.8, 0.8])
    table = np.array([[1, 0.01, 0.02], [0.01, 1, 0.6], [0.02, 0.6, 1]])
    expected = np.array([[1, 0.03, 0.04], [0.03, 1, 0.6], [0.04, 0.6, 1]])
    assert holm_pairs(table) == pytest.approx(expected)


def test_wrong_shapes_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"sums must have shape \(losses, classes\), got \(3,\); average over seeds"):
        sign_flip(np.ones(3))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_score_is_no_difference(value: float) -> None:
    sums = np.ones((2, 5))
    sums[1, 3] = value
    with pytest.raises(
        ValueError,
        match=r"^sums must be finite numbers, got some that are not; leave out queries that have no score\.$",
    ):
        sign_flip(sums)


@pytest.mark.parametrize(("value", "shown"), [(2, "2"), (-0.1, "-0.1"), (np.nan, "nan")])
def test_holm_takes_p_values_only(value: float, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"^p must lie between 0 and 1, got {shown}; pass p-values as shares\.$"):
        holm([0.1, value])
    assert holm([]).tolist() == [] and holm([0, 1]).tolist() == [0, 1]

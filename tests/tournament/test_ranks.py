"""Ranks against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from nearkin.tournament import Ranking, ranks


@given(st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=6))
def test_ranks_are_those_of_scipy_ties_and_all(scores: list[list[int]]) -> None:
    table = np.array(scores) / 7
    assert np.array_equal(ranks(table), rankdata(-table, axis=1))


def test_sums_that_differ_by_rounding_are_ties() -> None:
    assert 0.1 + 0.2 != 0.3
    assert ranks([0.1 + 0.2, 0.3, 0.4]).tolist() == [2.5, 2.5, 1]
    assert ranks([0.30001, 0.3, 0.4]).tolist() == [2, 3, 1]


def test_total_mean_and_sample_deviation() -> None:
    ranking = Ranking.of(("a", "b", "c"), [[3, 2, 1], [3, 1, 2], [2, 3, 1.0]])
    assert ranking.total.tolist() == [4, 6, 8]
    assert ranking.mean.tolist() == pytest.approx([4 / 3, 2, 8 / 3])
    assert ranking.deviation.tolist() == pytest.approx([np.std([1, 1, 2], ddof=1), 1, np.std([3, 2, 3], ddof=1)])


def test_one_experiment_has_no_deviation() -> None:
    assert np.isnan(Ranking.of(("a", "b"), [[1, 2]]).deviation).all()


def test_errors_are_one_sentence() -> None:
    with pytest.raises(
        ValueError, match=r"scores must have shape \(experiments, 2\), one column per loss, got \(2,\); "
    ):
        Ranking.of(("a", "b"), [1, 2])
    with pytest.raises(ValueError, match=r"scores must be finite numbers, got some that are not; leave out"):
        ranks([1.0, float("nan")])

"""Groups against a search through all subsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearkin.tournament import groups, letters


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    count = draw(st.integers(1, 6))
    table = np.zeros((count, count), bool)
    for one, other in itertools.combinations(range(count), 2):
        table[one, other] = table[other, one] = draw(st.booleans())
    return table


@given(tables())
def test_groups_are_the_largest_sets_that_hold_no_two_apart(table: np.ndarray) -> None:
    count = len(table)
    fit = [
        set(members)
        for size in range(1, count + 1)
        for members in itertools.combinations(range(count), size)
        if not table[np.ix_(members, members)].any()
    ]
    largest = sorted(tuple(sorted(members)) for members in fit if not any(members < other for other in fit))
    assert groups(table) == largest


@given(tables())
def test_two_share_a_letter_exactly_when_they_are_not_apart(table: np.ndarray) -> None:
    marks = letters(groups(table), len(table))
    for one, other in itertools.combinations(range(len(table)), 2):
        assert bool(set(marks[one]) & set(marks[other])) != table[one, other]


@given(st.lists(st.floats(1, 10), min_size=1, max_size=9), st.floats(0.1, 5))
def test_with_a_critical_difference_groups_are_stretches_of_the_ranking(means: list[float], difference: float) -> None:
    ordered = np.sort(means)
    for members in groups(np.abs(ordered[:, None] - ordered) > difference):
        assert members == tuple(range(members[0], members[-1] + 1))


def test_more_groups_than_letters() -> None:
    marks = letters([(number,) for number in range(28)], 28)
    assert marks[25:] == ["z", "a2", "b2"]


def test_a_loss_is_never_apart_from_itself() -> None:
    with pytest.raises(ValueError, match=r"apart must be a symmetric matrix of booleans that is false on the diagonal"):
        groups(np.ones((2, 2), bool))
    with pytest.raises(ValueError, match=r"apart must be a symmetric matrix"):
        groups([[False, True], [False, False]])

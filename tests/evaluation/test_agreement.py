"""The agreement of groupings against scikit-learn and loops, as a whole and per class."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score  # type: ignore[import-untyped]

from nearkin.evaluation import nmi, nmi_per_class, pair_f1, pair_f1_per_class
from tests.evaluation import plain

groupings = st.integers(1, 30).flatmap(lambda n: st.tuples(plain.some_labels(n), plain.some_labels(n)))


@given(groupings)
def test_nmi_equals_scikit_learn(pair: tuple[list[int], list[int]]) -> None:
    assert nmi(*pair) == pytest.approx(normalized_mutual_info_score(*pair), abs=1e-9)


@given(groupings)
def test_pair_f1_equals_the_double_loop(pair: tuple[list[int], list[int]]) -> None:
    assert pair_f1(*pair) == pytest.approx(plain.pair_f1(*pair), abs=1e-12)


@given(groupings)
def test_agreement_is_symmetric_and_blind_to_group_numbers(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    renamed = [7 - 3 * value for value in a]
    for measure in (nmi, pair_f1):
        assert measure(a, b) == pytest.approx(measure(b, a)) == pytest.approx(measure(renamed, b))
        assert 0 <= measure(a, b) <= 1


def test_agreement_edges() -> None:
    assert nmi([1, 1, 1], [2, 2, 2]) == 1
    assert nmi([1, 1, 1], [1, 2, 3]) == 0
    assert nmi([1, 2, 3], [3, 2, 1]) == pytest.approx(1)
    assert pair_f1([1, 2, 3], [3, 2, 1]) == 0
    assert pair_f1([1, 1, 2], [5, 5, 6]) == 1


@given(groupings)
def test_nmi_of_a_class_is_the_ratio_of_sums_over_its_items(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    n = len(a)
    found = nmi_per_class(a, b)
    assert len(found) == len(set(a))
    for name, value in zip(sorted(set(a)), found, strict=True):
        information = entropy = 0.0
        for one, other in zip(a, b, strict=True):
            if one == name:
                mine, theirs = a.count(one) / n, b.count(other) / n
                both = sum(x == one and y == other for x, y in zip(a, b, strict=True)) / n
                information += math.log(both / (mine * theirs))
                entropy -= (math.log(mine) + math.log(theirs)) / 2
        assert value == pytest.approx(information / entropy if entropy else 1, abs=1e-9)
        exact = {y for x, y in zip(a, b, strict=True) if x == name}
        alone = len(exact) == 1 and b.count(*exact) == a.count(name)
        assert (value > 1 - 1e-9) == alone


@given(groupings)
def test_f1_of_a_class_is_the_ratio_of_sums_over_its_items(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    totals = [0.0, 0.0]
    for name, value in zip(sorted(set(a)), pair_f1_per_class(a, b), strict=True):
        both = either = 0
        for i in range(len(a)):
            for j in range(len(a)):
                if i != j and a[i] == name:
                    both += a[i] == a[j] and b[i] == b[j]
                    either += (a[i] == a[j]) + (b[i] == b[j])
        assert value == (pytest.approx(2 * both / either, abs=1e-12) if either else None)
        totals = [totals[0] + 2 * both, totals[1] + either]
    assert pair_f1(a, b) == pytest.approx(totals[0] / totals[1] if totals[1] else 0, abs=1e-12)


def test_many_groups_need_no_full_table() -> None:
    groups = torch.arange(60_000) // 5
    shifted = (torch.arange(60_000) + 2) // 5
    assert nmi(groups, groups) == pytest.approx(1) and 0.9 < nmi(groups, shifted) < 1
    assert len(nmi_per_class(groups, shifted)) == 12_000


@pytest.mark.parametrize("measure", [nmi, pair_f1, nmi_per_class, pair_f1_per_class])
def test_agreement_errors(measure: object) -> None:
    for a, b, sentence in [
        ([], [], "a must hold at least one item, got none; pass one group number per item."),
        (
            [1, 2],
            [1],
            "b must have one entry per row of a (2), got 1; pass the labels of exactly these rows.",
        ),
    ]:
        with pytest.raises(ValueError) as caught:
            measure(a, b)  # type: ignore[operator]
        assert str(caught.value) == sentence

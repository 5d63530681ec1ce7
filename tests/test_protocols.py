"""Protocols: class-disjoint by construction, each class validates once, nothing of the test set is handed over."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearkin import protocols
from nearkin.protocols import Fold, cross_validation, fixed_validation

LABELS = np.repeat(np.arange(20), 3)


@given(st.lists(st.integers(0, 12), min_size=30, max_size=60), st.integers(2, 6), st.integers(0, 5))
def test_every_class_validates_once(labels: list[int], folds: int, seed: int) -> None:
    known = np.array(labels + list(range(6)))  # at least six classes
    parts = cross_validation(known, folds=folds, seed=seed)
    assert len(parts) == folds
    seen: list[int] = []
    for fold in parts:
        inside, outside = set(known[fold.validation]), set(known[fold.train])
        assert inside and outside and not inside & outside
        assert sorted([*fold.train, *fold.validation]) == list(range(len(known)))
        seen += inside
    assert sorted(seen) == sorted(set(known))
    sizes = [len(set(known[fold.validation])) for fold in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("ratio", "kept"), [(0.7, 6), (0.8, 4), (0.9, 2), (0.95, 1)])
def test_the_thesis_ratios(ratio: float, kept: int) -> None:
    [fold] = fixed_validation(LABELS, ratio=ratio)
    assert len(np.unique(LABELS[fold.validation])) == kept
    assert len(fold.train) + len(fold.validation) == len(LABELS)


@pytest.mark.parametrize(
    ("ratio", "classes", "kept"),
    [(0.9, 15, 1), (0.9, 25, 2), (0.7, 5, 1), (0.7, 15, 4), (0.7, 45, 13), (0.5, 7, 3), (0.95, 30, 1), (0.9, 98, 10)],
)
def test_half_a_class_trains_whatever_the_digits_of_a_float_are(ratio: float, classes: int, kept: int) -> None:
    labels = np.arange(classes)
    for value in (ratio, np.float64(ratio)):
        [fold] = fixed_validation(labels, ratio=value)
        assert len(fold.validation) == kept


def test_no_split_of_the_default_ratio_is_another_than_it_was() -> None:
    for classes in (*range(2, 400), 11318):
        [fold] = fixed_validation(np.arange(classes))
        assert len(fold.validation) == max(1, round((1 - 0.9) * classes)), classes


def test_numbers_of_numpy_are_taken_like_pythons() -> None:
    [plain], [known] = fixed_validation(LABELS, 0.75, 3), fixed_validation(LABELS, np.float32(0.75), np.int64(3))
    assert plain.validation.tolist() == known.validation.tolist()
    parts = [cross_validation(LABELS, *numbers) for numbers in ((4, 1), (np.int32(4), np.uint8(1)))]
    assert [fold.validation.tolist() for fold in parts[0]] == [fold.validation.tolist() for fold in parts[1]]


def test_names_of_a_column_are_taken_like_a_list() -> None:
    names = [f"species {label}" for label in LABELS]
    for known in (names, np.array(names, object), np.array([np.str_(name) for name in names], object)):
        [fold] = fixed_validation(known, 0.8)
        assert fold.validation.tolist() == fixed_validation(np.array(names), 0.8)[0].validation.tolist()
    numbers = fixed_validation(np.array(LABELS.tolist(), object), 0.8)[0]
    assert numbers.validation.tolist() == fixed_validation(LABELS, 0.8)[0].validation.tolist()


@pytest.mark.parametrize("odd", [None, float("nan"), 3, True, ("a",)])
def test_a_column_with_something_else_in_it_is_refused(odd: object) -> None:
    column = np.array(["jay", "jay", "wren", None], object)
    column[3] = odd
    with pytest.raises(
        ValueError, match=r"^labels must be a list of class numbers or names, got object of shape \(4,\);"
    ):
        fixed_validation(column)


def test_the_draw_is_the_seeds() -> None:
    first, again, other = (fixed_validation(LABELS, 0.8, seed)[0].validation for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()


def test_the_order_of_the_rows_changes_no_class() -> None:
    order = np.random.default_rng(0).permutation(len(LABELS))
    [plain], [mixed] = fixed_validation(LABELS, 0.7), fixed_validation(LABELS[order], 0.7)
    assert set(LABELS[plain.validation]) == set(LABELS[order][mixed.validation])


@pytest.mark.parametrize("name", ["last_epoch", "test_feedback"])
def test_without_validation_everything_trains(name: str) -> None:
    [fold] = protocols.PROTOCOLS[name](LABELS)
    assert fold.train.tolist() == list(range(60)) and not len(fold.validation)


def test_a_fold_keeps_no_labels_and_cannot_be_changed() -> None:
    [fold] = fixed_validation(LABELS)
    assert [field.name for field in dataclasses.fields(fold)] == ["train", "validation"]
    assert fold.labels is None  # type: ignore[attr-defined]  # the default of the argument, not what was passed
    with pytest.raises(dataclasses.FrozenInstanceError):
        fold.train = fold.validation  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        fold.train[0] = 5
    with pytest.raises(ValueError, match="share no class, got 20 in both, such as 0"):
        dataclasses.replace(fold, validation=np.arange(60), train=np.arange(60), labels=LABELS)


@pytest.mark.parametrize(
    "way", [lambda fold: fold, copy.copy, copy.deepcopy, lambda fold: pickle.loads(pickle.dumps(fold))]
)
def test_a_fold_and_its_copies_cannot_be_unlocked(way: Callable[[Fold], Fold]) -> None:
    fold = Fold([2, 3, 0], [4], labels=[7, 7, 8, 8, 9])
    found = way(fold)
    assert (found.train.tolist(), found.validation.tolist()) == ([2, 3, 0], [4])
    for rows in (found.train, found.validation, way(Fold([0], labels=[7])).validation):
        assert rows.dtype == np.int64
        with pytest.raises(ValueError, match="WRITEABLE"):
            rows.flags.writeable = True
        with pytest.raises(ValueError, match="read-only"):
            rows[:] = 4


def test_a_fold_is_not_changed_through_what_it_was_made_of() -> None:
    base = np.array([0, 1, 2, 3])
    fold = Fold(base[:2], base[2:], labels=[7, 7, 8, 8])
    base[0] = 2
    assert fold.train.tolist() == [0, 1] and base.flags.writeable


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Fold([0], [1]), "labels must be given"),
        (lambda: Fold([0], [1], labels=[3, 3]), "train and validation must share no class, got 1 in both, such as 3"),
        (lambda: Fold([0, 9], labels=[3, 3]), "train must be rows between 0 and 1, got \\[0, 9\\]"),
        (lambda: Fold([0, 0], labels=[3, 3]), "train must name each row once"),
        (lambda: Fold([], [0], labels=[3, 3]), "train must hold at least one row"),
        (
            lambda: cross_validation([0, 0, 1, 1]),
            "at least as many classes as folds \\(10\\), got 2; use last_epoch, or add",
        ),
        (
            lambda: cross_validation(range(7)),
            "at least as many classes as folds \\(10\\), got 7; lower folds to 3, since on one class alone recall is "
            "always 100 %, or add classes",
        ),
        (lambda: Fold([0.9], [1.2], labels=[0, 1]), "train must be whole numbers of rows, got float64"),
        (lambda: Fold(3, [1], labels=[0, 1]), "^train must be a list of rows, got 3; pass their numbers, such as"),
        (lambda: Fold(None, [1], labels=[0, 1]), "^train must be a list of rows, got None; pass their numbers"),
        (lambda: Fold([0], 1, labels=[0, 1]), "^validation must be a list of rows, got 1; pass their numbers"),
        (
            lambda: Fold([[0], [1, 2]], labels=LABELS),
            "^train must be a list of rows, got \\[\\[0\\], \\[1, 2\\]\\]; pass",
        ),
        (lambda: Fold([[0], [1]], labels=LABELS), "^train must be a list of rows, got \\[\\[0\\], \\[1\\]\\]; pass"),
        (
            lambda: Fold([0], labels=[[1], [1, 2]]),
            "^labels must be a list of class .*, got \\[\\[1\\], \\[1, 2\\]\\]; pass",
        ),
        (lambda: cross_validation(5), "^labels must be a list of class numbers or names, got 5; pass one per image"),
        (lambda: cross_validation(None), "^labels must be a list of class numbers or names, got None; pass one per"),
        (
            lambda: cross_validation(LABELS, seed=2**63),
            "seed must be a whole number at least 0 and at most 9223372036854775807, got 9223372036854775808; change",
        ),
        (lambda: cross_validation(LABELS, folds=1), "folds must be a whole number at least 2, got 1"),
        (lambda: fixed_validation([0, 0]), "at least 2 classes for fixed_validation, got 1"),
        (lambda: fixed_validation(LABELS, ratio=1.0), "ratio must be a finite number above 0 and below 1, got 1.0"),
        (lambda: fixed_validation([]), "labels must be a list of class numbers or names"),
        (lambda: fixed_validation([0.5, 1.5]), "labels must be a list of class numbers or names, got float64"),
    ],
)
def test_what_bad_input_gets(call: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()  # type: ignore[operator]


def test_a_ratio_of_numpy_counts_as_it_is_written() -> None:
    """As a float it would be a little less than nine tenths, and keep back one class more."""
    for ratio in (0.9, np.float32(0.9), np.float64(0.9), np.float16(0.9)):
        [fold] = fixed_validation(range(15), ratio)
        assert len(fold.validation) == 1

"""Which classes train, which choose the epoch: the three protocols of the comparison, and the plain last epoch.

A protocol takes the labels of the training set alone and gives ``Fold``s, rows to train on and rows to validate on. A class
is in one part or the other, never in both: a ``Fold`` that would share one cannot be made. What is tested lies outside:
no protocol is ever handed a test label.

- ``test_feedback``: all training classes train, and the epoch that does best on the *test* classes is reported. The habit
  of the field; it flatters, so the word goes with every number made this way.
- ``fixed_validation``: a share of the training classes, drawn once, is kept back and chooses the epoch.
- ``cross_validation``: every training class is kept back once; mean and deviation over the folds are reported.
- ``last_epoch``: all training classes train, nothing is chosen, the last epoch is reported.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checks

Rows = NDArray[np.int64]
Labels = NDArray[Any] | Iterable[int]

RATIO = 0.9
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on and rows to validate on, which share no class.

    The labels are looked at when a fold is made and not kept.

    >>> Fold([0, 1], [2, 3], labels=[7, 7, 8, 8])
    Fold(train=2 rows, validation=2 rows)
    >>> Fold([0, 2], [1, 3], labels=[7, 7, 8, 8])
    Traceback (most recent call last):
        ...
    ValueError: train and validation must share no class, got 2 in both, such as 7; split by class.
    """

    train: Rows
    validation: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    labels: InitVar[Any] = None

    def __post_init__(self, labels: Any) -> None:
        if labels is None:
            raise TypeError("labels must be given so that a fold can be checked, got none; pass those of all rows.")
        known = _labels(labels)
        for name in ("train", "validation"):
            rows = _rows(name, getattr(self, name))
            if len(rows) and not 0 <= rows.min() <= rows.max() < len(known):
                raise ValueError(
                    f"{name} must be rows between 0 and {len(known) - 1}, got {rows.tolist()[:5]}; "
                    f"number the rows of the labels."
                )
            if len(np.unique(rows)) != len(rows):
                raise ValueError(f"{name} must name each row once, got repeats; drop them.")
            object.__setattr__(self, name, _sealed(rows))
        if not len(self.train):
            raise ValueError("train must hold at least one row, got none; leave some classes to train on.")
        both = np.intersect1d(known[self.train], known[self.validation])
        if len(both):
            raise ValueError(
                f"train and validation must share no class, got {len(both)} in both, such as {both[0]}; split by class."
            )

    def __setstate__(self, state: dict[str, Rows]) -> None:
        """A copy, or one out of a file, can be changed as little: the arrays of it alone could be."""
        for name, rows in state.items():
            object.__setattr__(self, name, _sealed(rows))

    def __repr__(self) -> str:
        return f"Fold(train={len(self.train)} rows, validation={len(self.validation)} rows)"


def last_epoch(labels: Labels) -> list[Fold]:
    """One fold: everything trains, nothing chooses."""
    known = _labels(labels)
    return [Fold(np.arange(len(known)), labels=known)]


def test_feedback(labels: Labels) -> list[Fold]:
    """One fold: everything trains. The epoch is chosen on the test set, which is for the caller to admit to."""
    return last_epoch(labels)


test_feedback.__test__ = False  # type: ignore[attr-defined]  # a name that begins with test is no test


def fixed_validation(labels: Labels, ratio: float = RATIO, seed: int = 0) -> list[Fold]:
    """One fold: ``ratio`` of the classes train, the others, drawn with ``seed``, validate.

    The number of classes that validate is rounded, and at least one. ``ratio`` counts as it is written: 0.9 of 15 classes
    leaves one and a half, though 1 - 0.9 of a computer is a little less than a tenth. Half a class trains.

    >>> labels = np.repeat(np.arange(10), 3)
    >>> [fold] = fixed_validation(labels, ratio=0.8)
    >>> len(np.unique(labels[fold.train])), len(np.unique(labels[fold.validation]))
    (8, 2)
    """
    # As a number of NumPy is written, which has fewer digits than the float it becomes.
    ratio = float(str(ratio)) if isinstance(ratio, np.floating) else checks.plain(ratio)
    checks.setting("fixed_validation", "ratio", ratio, checks.Limit(low=0, high=1, low_open=True, high_open=True))
    known = _labels(labels)
    classes = _shuffled(known, seed)
    if len(classes) < 2:
        raise ValueError(
            f"labels must hold at least 2 classes for fixed_validation, got {len(classes)}; "
            f"add classes, or use last_epoch."
        )
    kept = min(max(1, _kept(ratio, len(classes))), len(classes) - 1)
    return [_fold(known, classes[:kept])]


def cross_validation(labels: Labels, folds: int = FOLDS, seed: int = 0) -> list[Fold]:
    """``folds`` folds: each class, in an order drawn with ``seed``, validates in exactly one; sizes differ by one class.

    >>> labels = np.repeat(np.arange(7), 2)
    >>> parts = cross_validation(labels, folds=3)
    >>> sorted(np.concatenate([fold.validation for fold in parts]).tolist()) == list(range(14))
    True
    """
    folds = checks.plain(folds)
    checks.setting("cross_validation", "folds", folds, checks.Limit(low=2, whole=True))
    known = _labels(labels)
    classes = _shuffled(known, seed)
    if len(classes) < folds:
        raise ValueError(
            f"labels must hold at least as many classes as folds ({folds}), got {len(classes)}; "
            + (
                f"lower folds to {len(classes) // 2}, since on one class alone recall is always 100 %, or add classes."
                if len(classes) > 3
                else "use last_epoch, or add classes."
            )
        )
    return [_fold(known, part) for part in np.array_split(classes, folds)]


PROTOCOLS: dict[str, Callable[..., list[Fold]]] = {
    "last_epoch": last_epoch,
    "test_feedback": test_feedback,
    "fixed_validation": fixed_validation,
    "cross_validation": cross_validation,
}


def _fold(labels: NDArray[Any], validating: NDArray[Any]) -> Fold:
    held = np.isin(labels, validating)
    return Fold(np.flatnonzero(~held), np.flatnonzero(held), labels=labels)


def _kept(ratio: float, classes: int) -> int:
    """How many classes to keep back, the same on any machine."""
    return math.ceil((1 - Fraction(repr(float(ratio)))) * classes - Fraction(1, 2))


def _shuffled(labels: NDArray[Any], seed: int) -> NDArray[Any]:
    seed = checks.plain(seed)
    checks.setting("protocols", "seed", seed, checks.SEED)
    return np.random.default_rng(seed).permutation(np.unique(labels))


def _rows(name: str, given: Any) -> Rows:
    """A list of whole numbers."""
    try:
        rows = np.asarray(given)
    except ValueError:  # of rows of different lengths NumPy makes no array
        rows = np.empty((0, 0))
    if rows.ndim != 1:
        shown = reprlib.repr(given)
        raise ValueError(f"{name} must be a list of rows, got {shown}; pass their numbers, such as [0, 1, 2].")
    if len(rows) and rows.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be whole numbers of rows, got {rows.dtype}; pass indices, such as np.flatnonzero of a mask."
        )
    return rows.astype(np.int64)


def _sealed(rows: Rows) -> Rows:
    """The same numbers, which nobody can change: what lies in bytes can be read only, whatever an array's flags are
    set to."""
    return np.frombuffer(rows.tobytes(), np.int64)


def _labels(labels: Labels) -> NDArray[Any]:
    try:
        known = np.asarray(labels if isinstance(labels, np.ndarray) else list(labels))
    except (TypeError, ValueError):  # one number, nothing, or rows of different lengths, of which NumPy makes no array
        raise ValueError(
            f"labels must be a list of class numbers or names, got {reprlib.repr(labels)}; "
            f"pass one per image of the training set."
        ) from None
    if known.dtype.kind == "O" and known.ndim == 1:  # how pandas hands out a column of names
        known = _of_one_kind(known)
    if known.ndim != 1 or not len(known) or known.dtype.kind not in "iuUS":
        raise ValueError(
            f"labels must be a list of class numbers or names, got {known.dtype} of shape {known.shape}; "
            f"pass one per image of the training set."
        )
    return known


def _of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Names or whole numbers as an array of their own kind; anything else, such as a gap between them, as it came."""
    kinds = {bool if isinstance(label, bool) else type(checks.plain(label)) for label in labels}
    return np.array(labels.tolist()) if kinds in ({str}, {int}) else labels

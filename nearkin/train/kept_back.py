"""How many training classes a protocol keeps back to validate, and the setting under which they are enough."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nearkin import protocols
from nearkin.train.settings import Train

Fold = protocols.Fold

FEW = 5
"""Fewer classes than these hardly tell one epoch from another."""


def folds(settings: Train, labels: NDArray[np.int64], **changes: float) -> list[Fold]:
    """All folds of the protocol; ``changes`` take the place of what the settings say."""
    options: dict[str, float] = {}
    if settings.protocol == "fixed_validation":
        options = {"ratio": settings.ratio, "seed": settings.split_seed}
    elif settings.protocol == "cross_validation":
        options = {"folds": settings.folds, "seed": settings.split_seed}
    return protocols.PROTOCOLS[settings.protocol](labels, **(options | changes))


def enough(fold: Fold, labels: NDArray[np.int64], least: int = 2) -> bool:
    """Whether so many classes validate, one of them with two images: with fewer no query has anything to tell apart."""
    counts = np.unique(labels[fold.validation], return_counts=True)[1]
    return len(counts) >= least and counts.max(initial=0) > 1


def remedy(settings: Train, labels: NDArray[np.int64], way: str, least: int = 2) -> str:
    """The highest ratio, or most folds, under which so many classes validate and as many train, in the words of ``way``;
    empty where there is none."""
    for name, value in _candidates(settings):
        made = folds(settings, labels, **{name: value})
        if all(enough(fold, labels, least) and _classes(labels[fold.train]) >= least for fold in made):
            return way.format(name=name, value=value)
    return ""


def _candidates(settings: Train) -> Iterator[tuple[str, float]]:
    if settings.protocol == "fixed_validation":
        tenths = (tenth / 10 for tenth in range(9, 0, -1))
        return (("ratio", value) for value in tenths if value < settings.ratio)
    return zip(itertools.repeat("folds"), range(settings.folds - 1, 1, -1))


def _classes(labels: NDArray[np.int64]) -> int:
    return len(np.unique(labels))

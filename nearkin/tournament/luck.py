"""Which runs of a loss were each trained with luck of their own, and may so speak for the loss.

The folds of one seed share its initialisation, the order of its batches and most of their training classes. Ten of them
look like ten runs, yet whatever that seed did for a loss is in all ten; so folds are averaged, and seeds counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from nearkin.tournament.blocks import complete

Part = tuple[int, int]  # fold, seed


def crossed(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts to compare on: where folds have several seeds, those that leave every seed with every fold.

    >>> crossed([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)])  # the last fold has one seed only
    ((0, 0), (1, 0), (2, 0))
    """
    if not in_folds(parts) or in_own_way(parts):
        return tuple(parts)
    held: dict[int, set[int]] = {}
    for fold, seed in parts:
        held.setdefault(fold, set()).add(seed)
    block = complete(held)
    chosen = tuple(key for key in parts if key[0] in block.rows and key[1] in block.columns)
    return chosen or tuple(parts)


def in_folds(parts: Sequence[Part]) -> bool:
    return len({fold for fold, _ in parts}) > 1


def in_own_way(parts: Sequence[Part]) -> bool:
    """Whether no two runs share a seed."""
    return len({seed for _, seed in parts}) == len(parts)


def repeats(parts: Sequence[Part]) -> int:
    """How often each loss was trained with luck of its own.

    >>> repeats([(0, 0), (0, 1), (0, 2)]), repeats([(0, 0), (1, 0), (2, 0)])
    (3, 1)
    """
    seeds = len({seed for _, seed in parts})
    return seeds if seeds == len(parts) or _rectangular(parts) else 1


def own_answers(parts: Sequence[Part], marks: Sequence[Hashable]) -> int:
    """How many seeds of a loss gave answers that no other seed of it gave before; ``marks`` tell those of each run.

    A network that is trained anew hardly answers thousands of queries the same way, so seeds that agree in all of them are
    most likely one network entered several times: their spread is zero, and says nothing about luck.

    >>> own_answers([(0, 0), (0, 1), (0, 2)], "aab"), own_answers([(0, 0), (1, 0), (0, 1), (1, 1)], "abab")
    (2, 1)
    """
    found: dict[int, list[tuple[int, Hashable]]] = {}
    for (fold, seed), mark in zip(parts, marks, strict=True):
        found.setdefault(seed, []).append((fold, mark))
    return len({tuple(mark for _, mark in sorted(own, key=lambda entry: entry[0])) for own in found.values()})


def by_seed(sums: NDArray[np.float64], parts: Sequence[Part]) -> tuple[NDArray[np.float64], bool]:
    """``sums`` (losses, runs, classes) with one run for each seed, and whether the runs are folds still.

    Folds are left as they are where a single seed has them all: their spread is the only thing to be seen of luck then.
    """
    if not in_folds(parts):
        return sums, False
    if in_own_way(parts) or repeats(parts) == 1:
        return sums, True
    seeds = sorted({seed for _, seed in parts})
    rows = [[place for place, (_, own) in enumerate(parts) if own == seed] for seed in seeds]
    return np.stack([sums[:, row].mean(1) for row in rows], 1), False


def _rectangular(parts: Sequence[Part]) -> bool:
    folds, seeds = {fold for fold, _ in parts}, {seed for _, seed in parts}
    return len(folds) * len(seeds) == len(set(parts))

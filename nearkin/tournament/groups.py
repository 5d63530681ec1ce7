"""Losses that cannot be told apart, bracketed together.

Two losses share a group exactly when they cannot be told apart. Groups are the largest sets in which no two are told apart;
with a critical difference they are stretches of the ranking, with tests of pairs they may skip one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def groups(apart: ArrayLike) -> list[tuple[int, ...]]:
    """The groups, given which pairs (k, k) are told apart; losses stand in the order of the ranking.

    A loss that is told apart from all others is a group of its own.

    >>> groups([[False, False, True], [False, False, False], [True, False, False]])
    [(0, 1), (1, 2)]
    """
    table = np.asarray(apart, bool)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or (table != table.T).any() or table.diagonal().any():
        raise ValueError(
            f"apart must be a symmetric matrix of booleans that is false on the diagonal, got shape {table.shape}; "
            f"a loss is never told apart from itself."
        )
    friends = [
        {other for other in range(len(table)) if other != one and not table[one, other]} for one in range(len(table))
    ]
    found: list[tuple[int, ...]] = []

    def extend(members: set[int], possible: set[int], tried: set[int]) -> None:
        """Bron and Kerbosch's search for the largest sets of mutual friends."""
        if not possible and not tried:
            found.append(tuple(sorted(members)))
            return
        if not possible:
            return
        pivot = max(possible | tried, key=lambda one: len(friends[one] & possible))
        for one in sorted(possible - friends[pivot]):
            extend(members | {one}, possible & friends[one], tried & friends[one])
            possible, tried = possible - {one}, tried | {one}

    if len(table):
        extend(set(), set(range(len(table))), set())
    return sorted(found)


def letters(sets: Sequence[Sequence[int]], count: int) -> list[str]:
    """For each of ``count`` losses the letters of its groups: who shares a letter cannot be told apart.

    >>> letters([(0, 1), (1, 2)], 3)
    ['a', 'ab', 'b']
    """
    return ["".join(_letter(number) for number, members in enumerate(sets) if one in members) for one in range(count)]


def _letter(number: int) -> str:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    turn, place = divmod(number, len(alphabet))
    return alphabet[place] + (str(turn + 1) if turn else "")

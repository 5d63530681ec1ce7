"""The part of a table of losses and runs in which nothing is missing.

A mean over the runs that happen to be there would compare a loss on lucky seeds with another on all of them, so losses
are compared on the same runs only, and what is left out is named.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row", bound=Hashable)
Column = TypeVar("Column", bound=Hashable)


@dataclass(frozen=True)
class Block(Generic[Row, Column]):
    """Rows that all have every one of the columns, and what was left out to get there."""

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    rows_out: tuple[Row, ...]
    columns_out: tuple[Column, ...]


def complete(table: Mapping[Row, Collection[Column]]) -> Block[Row, Column]:
    """The rows and columns to compare, given the columns that each row has.

    1. A column that at most half of the rows have is left out: it has only begun.
    2. Then a row that lacks more than half of the columns is left out.
    3. Then a column that one of the rows lacks is left out. If none is left, the row with the fewest columns goes, until
       there is one.

    >>> complete({"contrastive": {0, 1, 2}, "triplet": {0, 2}, "margin": {0, 1, 2}, "n_pair": {1}})
    Block(rows=('contrastive', 'triplet', 'margin'), columns=(0, 2), rows_out=('n_pair',), columns_out=(1,))
    """
    held = {row: set(columns) for row, columns in table.items()}
    every = sorted({column for columns in held.values() for column in columns}, key=_natural)
    common = {column for column in every if 2 * sum(column in columns for columns in held.values()) > len(held)}
    rows = [row for row, columns in held.items() if columns & common and 2 * len(common - columns) <= len(common)]
    shared = _shared(held, rows, common)
    while len(rows) > 2 and not shared:
        fewest = min(len(held[row] & common) for row in rows)
        rows.remove([row for row in rows if len(held[row] & common) == fewest][-1])
        shared = _shared(held, rows, common)
    if not shared:
        rows = []
    return Block(
        tuple(rows),
        tuple(column for column in every if column in shared),
        tuple(row for row in held if row not in rows),
        tuple(column for column in every if column not in shared),
    )


def _shared(held: Mapping[Row, set[Column]], rows: list[Row], columns: set[Column]) -> set[Column]:
    return {column for column in columns if all(column in held[row] for row in rows)} if rows else set()


def _natural(column: object) -> tuple[object, ...]:
    """Numbers and tuples of numbers in their own order, anything else by its text."""
    if isinstance(column, tuple):
        return tuple(_natural(entry) for entry in column)
    return (0, column, "") if isinstance(column, int | float) else (1, 0, str(column))

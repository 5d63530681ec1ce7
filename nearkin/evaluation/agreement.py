"""How well two groupings of the same items agree: NMI, and F1 over pairs; as a whole and for each group.

Both measures are a ratio of sums over the items. Summed over the items of one group only, the same ratio says how well
this group is found.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin.evaluation.inputs import Labels, label_tensor


@dataclass(frozen=True)
class _Table:
    """How often each pair of groups occurs, for the pairs that occur: ``cells`` (c,), and the groups ``row`` (c,),
    ``column`` (c,) of each; ``rows``, ``columns``: the sizes of all groups.
    """

    cells: Tensor
    row: Tensor
    column: Tensor
    rows: Tensor
    columns: Tensor

    def by_row(self, values: Tensor) -> Tensor:
        """Sums of the values (c,) of the cells of each row; cells stand in order, so that runs agree bit for bit."""
        lengths = torch.bincount(self.row, minlength=len(self.rows))
        return torch.segment_reduce(values, "sum", lengths=lengths, unsafe=True)


def _table(a: Labels, b: Labels) -> _Table:
    first = label_tensor("a", a, None, "the items")
    if not len(first):
        raise ValueError("a must hold at least one item, got none; pass one group number per item.")
    second = label_tensor("b", b, len(first), "a", first.device)
    rows, row = torch.unique(first, return_inverse=True)
    columns, column = torch.unique(second, return_inverse=True)
    # Only cells that occur are kept: a full table of 11,316 x 11,316 groups would take a gigabyte.
    cells, counts = torch.unique(row * len(columns) + column, return_counts=True)
    sizes = torch.bincount(row, minlength=len(rows)), torch.bincount(column, minlength=len(columns))
    return _Table(counts, cells // len(columns), cells % len(columns), *sizes)


def _information(table: _Table) -> tuple[Tensor, Tensor]:
    """What each group of a adds to the mutual information, and to the mean of both entropies."""
    total = float(table.cells.sum())
    joint, first, second = (part.double() / total for part in (table.cells, table.rows, table.columns))
    shared = table.by_row(joint * (joint.log() - first[table.row].log() - second[table.column].log()))
    entropy = -(first * first.log()) - table.by_row(joint * second[table.column].log())
    return shared, entropy / 2


def nmi(a: Labels, b: Labels) -> float:
    """Normalised mutual information of two groupings, each (n,) integers: I(a; b) / ((H(a) + H(b)) / 2).

    0 for independent groupings, 1 for equal ones (whatever the group numbers); two groupings without any
    split are equal.

    >>> nmi([0, 0, 1, 1], [5, 5, 3, 3]), nmi([0, 0, 1, 1], [0, 1, 0, 1])
    (1.0, 0.0)
    """
    table = _table(a, b)
    if len(table.rows) == len(table.columns) == 1:
        return 1.0
    shared, entropy = _information(table)
    return min(1.0, max(0.0, float(shared.sum() / entropy.sum())))


def nmi_per_class(a: Labels, b: Labels) -> list[float]:
    """NMI of each group of ``a``, in rising order: both sums of ``nmi`` over the items of this group alone.

    1 if the group is exactly one group of ``b``, 0 if its items are spread over ``b`` like all items are.

    >>> [round(value, 2) for value in nmi_per_class([0, 0, 1, 1, 2, 2], [5, 5, 3, 4, 3, 4])]
    [1.0, 0.37, 0.37]
    """
    table = _table(a, b)
    if len(table.rows) == len(table.columns) == 1:
        return [1.0]
    shared, entropy = _information(table)
    return list((shared / entropy).clamp(0, 1).tolist())


def pair_f1(a: Labels, b: Labels) -> float:
    """F1 over pairs of items: how well "together in b" finds "together in a", or the other way round.

    ``a``, ``b`` (n,) integers. Of T pairs together in both, A in a and B in b: 2 T / (A + B), the harmonic
    mean of precision T / B and recall T / A; 0 if A = B = 0.

    >>> pair_f1([0, 0, 1, 1], [0, 0, 0, 1])
    0.4
    """
    table = _table(a, b)
    together, first, second = (int((size * (size - 1)).sum()) for size in (table.cells, table.rows, table.columns))
    return 2 * together / (first + second) if first + second else 0.0


def pair_f1_per_class(a: Labels, b: Labels) -> list[float | None]:
    """F1 of each group of ``a``, in rising order, over the pairs whose first item is in this group; None where such an
    item is together with no other, neither in ``a`` nor in ``b``.

    >>> pair_f1_per_class([0, 0, 1, 1, 2], [5, 5, 3, 4, 6])
    [1.0, 0.0, None]
    """
    table = _table(a, b)
    together = table.by_row(table.cells * (table.cells - 1.0))
    found = table.by_row(table.cells * (table.columns[table.column] - 1.0))
    pairs = table.rows * (table.rows - 1.0) + found
    return [2 * one / both if both else None for one, both in zip(together.tolist(), pairs.tolist(), strict=True)]

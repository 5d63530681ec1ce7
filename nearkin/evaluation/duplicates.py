"""Which rows of a matrix are copies of one another.

A matrix product may give equal columns values that differ in the last bit, because a library computes the
edge of a matrix with other instructions than its middle. A tie between copies would then be broken by
rounding instead of by index. So rankings take all copies of a vector for equally similar, by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Rows hashed at a time: their integers stay in the cache of a processor.
PIECE = 1024


@dataclass(frozen=True)
class Copies:
    """``first`` (u,): the first row of each vector that occurs more than once; ``columns`` (c,) ascending: all rows
    with such a vector; ``owner`` (c,): which of ``first`` each of them equals.
    """

    first: Tensor
    columns: Tensor
    owner: Tensor

    def names(self, rows: int) -> Tensor:
        """(rows,): the first row that holds the same vector."""
        names = torch.arange(rows, device=self.columns.device)
        names[self.columns] = self.first[self.owner]
        return names


def _row_codes(vectors: Tensor) -> Tensor:
    """A 64-bit number per row, equal for rows with equal bits."""
    integer = torch.int64 if vectors.dtype == torch.float64 else torch.int32
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (vectors.shape[1],), generator=generator).to(vectors.device)
    # Adding 0 turns -0 into 0, which are equal numbers with other bits.
    pieces = [((piece + 0.0).view(integer).long() * factors).sum(1) for piece in torch.split(vectors, PIECE)]
    return torch.cat(pieces)


def copies(vectors: Tensor) -> Copies | None:
    """The rows of ``vectors`` (m, d) that occur more than once; None if all differ.

    >>> found = copies(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    >>> found.first, found.columns, found.owner
    (tensor([0]), tensor([0, 2]), tensor([0, 0]))
    """
    rows = torch.arange(len(vectors), device=vectors.device)
    values, group, counts = torch.unique(_row_codes(vectors), return_inverse=True, return_counts=True)
    if len(values) == len(vectors):
        return None
    first = torch.full_like(counts, len(vectors)).scatter_reduce_(0, group, rows, "amin")
    repeated = (counts > 1)[group].nonzero().squeeze(1)
    # Rows with equal codes are compared in full: a chance collision must not merge two vectors.
    original = first[group[repeated]]
    pieces = zip(torch.split(repeated, PIECE), torch.split(original, PIECE), strict=True)
    same = torch.cat([(vectors[a] == vectors[b]).all(1) for a, b in pieces])
    owners, owner = torch.unique(original[same], return_inverse=True)
    return Copies(owners, repeated[same], owner)

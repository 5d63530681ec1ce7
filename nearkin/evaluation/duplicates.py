"""Which rows of a matrix are copies of one another.

A matrix product may give equal columns values that differ in the last bit, because a library computes the
edge of a matrix with other instructions than its middle. A tie between copies would then be broken by
rounding instead of by index. So neighbours scores all copies of a vector by one and the same number.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Rows hashed at a time: the integers of one such piece stay below 100 MB for 1,024 dimensions.
PIECE = 8192


@dataclass(frozen=True)
class Copies:
    """``vectors`` (u, d): each vector that occurs more than once; ``columns`` (c,) ascending: where copies
    stand in the gallery; ``owner`` (c,): which of ``vectors`` each of them equals.
    """

    vectors: Tensor
    columns: Tensor
    owner: Tensor

    def rewrite(self, similarity: Tensor, shared: Tensor, start: int) -> None:
        """Write the similarity (rows, u) that copies share into a block of columns that begins at start."""
        ends = self.columns.new_tensor([start, start + similarity.shape[1]])
        low, high = torch.searchsorted(self.columns, ends).tolist()
        similarity[:, self.columns[low:high] - start] = shared[:, self.owner[low:high]]


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
    >>> found.columns, found.owner, found.vectors
    (tensor([0, 2]), tensor([0, 0]), tensor([[1., 0.]]))
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
    return Copies(vectors[owners], repeated[same], owner)

"""The similarity that every ranking goes by: the cosine in float64, told apart in steps of 2**-40.

The last bits of a matrix product depend on the library, on the number of threads and on where in the matrix a pair
stands; a ranking by such numbers would change with them. So a fast float32 product only sorts out what is clear:
``doubt`` bounds its error, and whatever lies closer together than that is scored again by the rule. A step is far
above the rounding of float64 and far below any difference that means something: pairs with equal cosines (copies,
binary codes) are ties, in whatever order a sum is formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin.vectors import unit

# Steps per unit of similarity: one step is 9.1e-13.
STEPS = 2.0**40
# Below every similarity, in steps: what is left out of a ranking.
NEVER = -(2**62)

# Relative rounding of a float32 number, and what a product loses before it starts where torch was told that float32
# matrix products may use shorter numbers (TF32, bfloat16).
ROUNDING = 2.0**-24
SHORTENED = {"highest": 0.0, "high": 2.0**-10, "medium": 2.0**-7}

# Numbers held at a time while pairs are scored one by one: what fits the cache of a processor; more elsewhere.
PIECE_CPU, PIECE = 2**18, 2**23


@dataclass(frozen=True)
class Directions:
    """``vectors`` (n, d) and the reciprocals of their lengths (n,) in float64, 0 for zero vectors."""

    vectors: Tensor
    inverse: Tensor

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def take(self, rows: Tensor) -> Directions:
        """Some rows; all of them in their order are not copied."""
        if len(rows) == len(self) and bool((rows[1:] > rows[:-1]).all()):
            return self
        return Directions(self.vectors[rows], self.inverse[rows])

    def rough(self, rows: Tensor | slice) -> Tensor:
        """Unit vectors in float32, a copy: what fast products are made of."""
        index = torch.arange(len(self), device=self.vectors.device)[rows]
        result = torch.empty(len(index), self.dim, device=self.vectors.device)
        piece = max(1, PIECE // self.dim)
        for start in range(0, len(index), piece):
            result[start : start + piece] = self.fine(index[start : start + piece])
        return result

    def fine(self, rows: Tensor | slice) -> Tensor:
        """Unit vectors in float64, a copy."""
        return self.vectors[rows] * self.inverse[rows, None]


def directions(vectors: Tensor) -> Directions:
    """Prepare float32 or float64 ``vectors`` (n, d) for scoring; float32 ones are not copied."""
    if vectors.dtype == torch.float64:
        return Directions(unit(vectors), vectors.new_ones(len(vectors)))
    length = torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64)
    return Directions(vectors, torch.where(length < 1e-30, 0, 1 / length))


def doubt(dim: int) -> float:
    """The most by which a float32 product of two ``rough`` vectors can differ from their cosine.

    Rounding of both vectors, of ``dim`` products and sums in any order, of a bound that is compared, and some for
    products of roundings.

    >>> f"{doubt(512):.1e}"
    '3.1e-05'
    """
    try:
        shortened = SHORTENED[torch.get_float32_matmul_precision()]
    except RuntimeError:  # set for one device only, which this question does not allow
        shortened = SHORTENED["medium"]
    share = (dim + 12) * ROUNDING
    return share / (1 - share) + shortened if share < 0.5 else 4.0


def to_steps(cosine: Tensor) -> Tensor:
    """Whole steps (int64) of float64 cosines."""
    return cosine.mul_(STEPS).round_().long()


def from_steps(steps: Tensor) -> Tensor:
    """The float64 cosine at each step, -inf for what is left out."""
    return torch.where(steps == NEVER, -torch.inf, steps.double() / STEPS)


def pair_steps(left: Directions, rows: Tensor, right: Directions, columns: Tensor) -> Tensor:
    """Similarity in steps of the pairs (rows[p], columns[p]): the rule itself."""
    found = torch.empty(len(rows), dtype=torch.float64, device=rows.device)
    piece = max(1, (PIECE_CPU if rows.device.type == "cpu" else PIECE) // left.dim)
    for start in range(0, len(rows), piece):
        i, j = rows[start : start + piece], columns[start : start + piece]
        products = left.vectors[i].double().mul_(right.vectors[j])
        found[start : start + piece] = products.sum(1).mul_(left.inverse[i]).mul_(right.inverse[j])
    return to_steps(found)


def block_steps(left: Directions, rows: Tensor | slice, right: Directions, columns: Tensor | slice) -> Block:
    """Similarity in steps of all pairs of some rows and columns, by a float64 product: the rule up to rounding of
    float64, which is one step where a cosine lies about halfway between two.
    """
    return Block(left.fine(rows) @ right.fine(columns).T, left.dim)


class Block:
    """Cosines of a float64 product, scaled in place, and their ``steps``."""

    def __init__(self, cosine: Tensor, dim: int) -> None:
        self.exact = cosine.mul_(STEPS)
        self.steps = self.exact.round().long()
        # Each of two sums of ``dim`` products is off by at most so much of a step.
        self.halfway = 0.5 - min(0.5, (2 * dim + 8) * STEPS * 2.0**-53)

    def unsure(self, asked: Tensor) -> Tensor:
        """(p, 2): which of the pairs that a mask asks for the rule may put into another step."""
        if not bool(asked.any()):
            return asked.new_empty(0, 2, dtype=torch.int64)
        return (asked & ((self.exact - self.steps).abs_() >= self.halfway)).nonzero()

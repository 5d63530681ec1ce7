"""A batch of queries against a gallery, with the index sets that the losses sum over."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from . import scalars


@dataclass
class Samples:
    """Queries (rows i) and gallery (columns j), all raw embeddings f in float64.

    Without a gallery the columns are the queries themselves and self_index[i] = i. `positive[i]` and
    `negative[i]` are column indices; an index that is repeated counts that often. They default to what the
    labels say: P_i = {j != self_index[i] : y_j = y_i}, N_i = {j : y_j != y_i}. `triplets` come from a miner.
    """

    queries: Tensor
    labels: list[int]
    gallery: Tensor = None  # type: ignore[assignment]
    gallery_labels: list[int] = None  # type: ignore[assignment]
    self_index: list[int] = None  # type: ignore[assignment]
    positive: list[list[int]] = None  # type: ignore[assignment]
    negative: list[list[int]] = None  # type: ignore[assignment]
    triplets: list[tuple[int, int, int]] | None = None

    def __post_init__(self) -> None:
        if self.queries.dtype != torch.float64:
            raise TypeError("the reference works in float64")
        if self.gallery is None:
            self.gallery = self.queries
            self.gallery_labels = list(self.labels)
        if self.gallery_labels is None:
            if self.gallery is not self.queries:
                raise ValueError("a separate gallery needs gallery_labels")
            self.gallery_labels = list(self.labels)
        self.query_rows = self.queries.unbind(0)
        self.gallery_rows = self.query_rows if self.gallery is self.queries else self.gallery.unbind(0)
        if self.self_index is None:
            shared = self.gallery is self.queries
            self.self_index = [i if shared else -1 for i in self.rows]
        if self.positive is None:
            self.positive = [[j for j in self.others(i) if self.same(i, j)] for i in self.rows]
        if self.negative is None:
            self.negative = [[j for j in self.others(i) if not self.same(i, j)] for i in self.rows]

    @property
    def rows(self) -> range:
        return range(len(self.labels))

    @property
    def columns(self) -> range:
        return range(len(self.gallery_labels))

    def others(self, i: int) -> list[int]:
        """Every column but the query's own."""
        return [j for j in self.columns if j != self.self_index[i]]

    def same(self, i: int, j: int) -> bool:
        return self.labels[i] == self.gallery_labels[j]

    def zero(self) -> Tensor:
        """The number 0, attached to the inputs so that an empty loss still has a (zero) gradient."""
        return (self.queries.sum() + self.gallery.sum()) * 0.0

    def unit(self, i: int) -> Tensor:
        """x_i of a query."""
        return scalars.unit_vector(self.query_rows[i])

    def gallery_unit(self, j: int) -> Tensor:
        """x_j of a gallery point."""
        return scalars.unit_vector(self.gallery_rows[j])

    def dot(self, i: int, j: int) -> Tensor:
        """Raw f_i . f_j."""
        return torch.dot(self.query_rows[i], self.gallery_rows[j])

    def cosine(self, i: int, j: int) -> Tensor:
        """s_ij = x_i . x_j."""
        return torch.dot(self.unit(i), self.gallery_unit(j))

    def squared_distance(self, i: int, j: int) -> Tensor:
        """d_ij^2 of unit vectors."""
        return scalars.squared_distance(self.unit(i), self.gallery_unit(j))

    def distance(self, i: int, j: int) -> Tensor:
        """d_ij = |x_i - x_j|."""
        return scalars.distance(self.unit(i), self.gallery_unit(j))

    def raw_squared_distance(self, i: int, j: int) -> Tensor:
        """|f_i - f_j|^2."""
        return scalars.squared_distance(self.query_rows[i], self.gallery_rows[j])

    def raw_distance(self, i: int, j: int) -> Tensor:
        """D_ij = |f_i - f_j|."""
        return scalars.distance(self.query_rows[i], self.gallery_rows[j])

    def gallery_cosine(self, j: int, k: int) -> Tensor:
        """x_j . x_k of two gallery points."""
        return torch.dot(self.gallery_unit(j), self.gallery_unit(k))

    def gallery_squared_distance(self, j: int, k: int) -> Tensor:
        """|x_j - x_k|^2 of two gallery points."""
        return scalars.squared_distance(self.gallery_unit(j), self.gallery_unit(k))

    def gallery_distance(self, j: int, k: int) -> Tensor:
        """|x_j - x_k| of two gallery points."""
        return scalars.distance(self.gallery_unit(j), self.gallery_unit(k))

    def gallery_raw_distance(self, j: int, k: int) -> Tensor:
        """|f_j - f_k| of two gallery points."""
        return scalars.distance(self.gallery_rows[j], self.gallery_rows[k])

    def negatives_of_column(self, j: int) -> list[int]:
        """N_j of a gallery point: the set of the query it is, else what the labels say."""
        if j in self.self_index:
            return self.negative[self.self_index.index(j)]
        return [k for k in self.columns if self.gallery_labels[k] != self.gallery_labels[j]]

    def unordered(self, sets: list[list[int]]) -> list[tuple[int, int]]:
        """The (row, column) pairs of the sets, with (i, j) and (j, i) of the same two samples taken once."""
        seen: set[tuple[int, ...]] = set()
        pairs = []
        for i in self.rows:
            for j in sets[i]:
                own = self.self_index[i]
                key = (-1, i, j) if own < 0 else (min(own, j), max(own, j))
                if key not in seen:
                    seen.add(key)
                    pairs.append((i, j))
        return pairs

    def triplet_list(self) -> list[tuple[int, int, int]]:
        """The mined triplets, else positive x negative of every row."""
        if self.triplets is not None:
            return list(self.triplets)
        return [(i, p, n) for i in self.rows for p in self.positive[i] for n in self.negative[i]]

    def with_pairs(self, positive: list[list[int]], negative: list[list[int]]) -> "Samples":
        """The same points with other index sets."""
        return replace(self, positive=positive, negative=negative, triplets=None)

    def with_triplets(self, triplets: Iterable[tuple[int, int, int]]) -> "Samples":
        """The same points with mined triplets; a pair counts as often as it occurs in them."""
        kept = list(triplets)
        positive = [[p for i, p, _ in kept if i == row] for row in self.rows]
        negative = [[n for i, _, n in kept if i == row] for row in self.rows]
        return replace(self, positive=positive, negative=negative, triplets=kept)

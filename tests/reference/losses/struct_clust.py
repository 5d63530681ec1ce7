"""Structured clustering (facility location) loss."""

from torch import Tensor

from ..metrics import nmi
from ..samples import Samples
from ..scalars import hinge

TOLERANCE = 1e-12
PASSES = 10


def assign(d: list[list[float]], chosen: list[int]) -> list[int]:
    """g(S): for every query the medoid of S nearest to it, the earliest in S among equals."""
    result = []
    for row in d:
        best = chosen[0]
        for j in chosen[1:]:
            if row[j] < row[best]:
                best = j
        result.append(best)
    return result


def objective(d: list[list[float]], labels: list[int], chosen: list[int], gamma: float) -> float:
    """F(S) + gamma (1 - NMI(y, g(S)))."""
    clusters = assign(d, chosen)
    facility = -sum(row[j] for row, j in zip(d, clusters, strict=True))
    return facility + gamma * (1 - nmi(labels, clusters))


def select(d: list[list[float]], labels: list[int], gamma: float) -> list[int]:
    """The set S, in order of insertion.

    Greedy: starting from the empty set, add the column that maximises the objective of the partial set with
    it (the lowest index among equals, equal meaning within 1e-12), until |S| = number of classes of the
    queries (or every column is in S).
    Refinement: go through the positions of S in order of insertion; at each, find the column outside S whose
    substitution gives the largest objective (the lowest index among equals) and put it there if that exceeds
    the present objective by more than 1e-12. Repeat until a whole pass changes nothing, at most 10 passes.
    """
    columns = range(len(d[0]))
    size = min(len(set(labels)), len(columns))
    chosen: list[int] = []
    while len(chosen) < size:
        best, best_value = -1, -float("inf")
        for j in columns:
            if j not in chosen:
                value = objective(d, labels, [*chosen, j], gamma)
                if value > best_value + TOLERANCE:
                    best, best_value = j, value
        chosen.append(best)
    current = objective(d, labels, chosen, gamma)
    for _ in range(PASSES):
        changed = False
        for position in range(size):
            best, best_value = chosen[position], current
            for j in columns:
                if j not in chosen:
                    value = objective(d, labels, [*chosen[:position], j, *chosen[position + 1 :]], gamma)
                    if value > best_value + TOLERANCE:
                        best, best_value = j, value
            if best != chosen[position]:
                chosen[position], current = best, best_value
                changed = True
        if not changed:
            break
    return chosen


def struct_clust(samples: Samples, *, gamma: float = 1.0) -> Tensor:
    """One value (Song 2017, [RLL 6-7]): [ F(S) + gamma (1 - NMI(y, g(S))) - F~ ]+,

    F(S) = -sum_i min_{j in S} d_ij, F~ = sum_c max_{j in c} -sum_{i in c} d_ij. S (see `select`), the
    assignment g(S) and the medoids of F~ are constants; the distances to them are differentiated.
    NMI: arithmetic mean, natural logarithm, 1 if both partitions are a single cluster, 0 if only one is.
    """
    d = [[samples.distance(i, j) for j in samples.columns] for i in samples.rows]
    d_value = [[entry.item() for entry in row] for row in d]
    chosen = select(d_value, samples.labels, gamma)
    clusters = assign(d_value, chosen)
    value = samples.zero()
    for i in samples.rows:
        value = value - d[i][clusters[i]]
    value = value + gamma * (1 - nmi(samples.labels, clusters))
    for c in sorted(set(samples.labels)):
        members = [i for i in samples.rows if samples.labels[i] == c]
        best, best_value = -1, float("inf")
        for j in samples.columns:
            if samples.gallery_labels[j] == c:
                spread = sum(d_value[i][j] for i in members)
                if spread < best_value - TOLERANCE:
                    best, best_value = j, spread
        if best < 0:
            raise ValueError(f"class {c} has no column")
        for i in members:
            value = value + d[i][best]
    return hinge(value)

"""k-means on embeddings, and how well two groupings of the same items agree: NMI and F1 over pairs."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nearkin.evaluation.inputs import Labels, Vectors, label_tensor, vector_tensor, whole
from nearkin.evaluation.neighbours import MEMORY

# k-means stops once a round lowers the sum of squared distances by less than this share of it.
TOLERANCE = 1e-4


class Clusters(NamedTuple):
    """``assignment`` (n,): the cluster of each vector; ``centers`` (k, d); ``inertia``: sum of squared
    distances of the vectors to their centers.
    """

    assignment: Tensor
    centers: Tensor
    inertia: float


def kmeans(
    vectors: Vectors, k: int, *, seed: int = 0, iterations: int = 100, starts: int = 1, memory: int = MEMORY
) -> Clusters:
    """Group ``vectors`` (n, d) into k clusters by squared Euclidean distance (Lloyd's algorithm).

    Start: greedy k-means++, each next center the best of 2 + log k candidates drawn in proportion to the
    squared distance from the centers so far. Rounds: at most ``iterations``, ended earlier when no vector
    changes its cluster or the inertia falls by less than 1e-4 of itself. A cluster that becomes empty takes
    the vector farthest from its center among clusters with at least two (lowest index on ties). Of several
    ``starts`` the one with the lowest inertia is kept. The result is a function of the arguments alone;
    distances are formed in blocks of ``memory`` bytes. With fewer distinct vectors than k some clusters stay
    empty.

    >>> found = kmeans(torch.tensor([[0.0], [0.1], [5.0], [5.2]]), 2)
    >>> bool(found.assignment[0] == found.assignment[1] != found.assignment[2]), round(found.inertia, 3)
    (True, 0.025)
    """
    points = vector_tensor("vectors", vectors)
    k = whole("kmeans", "k", k, 1)
    if k > len(points):
        message = f"k must be at most the number of vectors ({len(points)}), got {k}; ask for fewer clusters."
        raise ValueError(message)
    iterations, starts = whole("kmeans", "iterations", iterations, 1), whole("kmeans", "starts", starts, 1)
    memory = whole("kmeans", "memory", memory, 1)
    generator = torch.Generator().manual_seed(whole("kmeans", "seed", seed, 0))
    with torch.no_grad(), torch.autocast(points.device.type, enabled=False):
        # Distances around the mean lose fewer digits than distances around a far origin.
        mean = points.mean(0)
        points = points - mean
        found = [_lloyd(points, _plus_plus(points, k, generator), iterations, memory) for _ in range(starts)]
        best = min(found, key=lambda clusters: clusters.inertia)
        return best._replace(centers=best.centers + mean)


def _plus_plus(points: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Centers (k, d) drawn one after the other, far from those already drawn."""
    n, device = len(points), points.device
    trials = 2 + int(math.log(k))
    square = points.square().sum(1)
    chosen = torch.empty(k, dtype=torch.int64, device=device)
    chosen[0] = torch.randint(n, (), generator=generator)
    nearest = _squared_distances(points, square, points[chosen[:1]]).squeeze(1)
    for position in range(1, k):
        reach = nearest.double().cumsum(0)
        draws = torch.rand(trials, generator=generator, dtype=torch.float64).to(device) * reach[-1]
        candidates = torch.searchsorted(reach, draws, right=True).clamp(max=n - 1)
        left = torch.minimum(_squared_distances(points, square, points[candidates]), nearest[:, None])
        winner = left.sum(0, dtype=torch.float64).argmin()
        chosen[position] = candidates[winner]
        nearest = left[:, winner].contiguous()
    return points[chosen]


def _squared_distances(points: Tensor, square: Tensor, centers: Tensor) -> Tensor:
    """(n, c) squared distances, never negative."""
    product = torch.addmm(centers.square().sum(1), points, centers.T, alpha=-2)
    return product.add_(square[:, None]).clamp_(min=0)


def _lloyd(points: Tensor, centers: Tensor, iterations: int, memory: int) -> Clusters:
    assignment, distance = _assign(points, centers, memory)
    inertia = math.inf
    for _ in range(iterations):
        grouped, spread = (
            _reseed(assignment, distance, len(centers)),
            float(distance.sum(dtype=torch.float64)),
        )
        # A round that had to fill an empty cluster has not settled yet.
        if grouped is assignment and inertia - spread <= TOLERANCE * spread:
            break
        inertia = spread
        centers = _means(points, grouped, len(centers))
        assignment, distance = _assign(points, centers, memory)
        if torch.equal(grouped, assignment):
            break
    return Clusters(assignment, centers, float(distance.sum(dtype=torch.float64)))


def _assign(points: Tensor, centers: Tensor, memory: int) -> tuple[Tensor, Tensor]:
    """The nearest center of each point (n,) and the squared distance to it (n,), in blocks of rows."""
    square = points.square().sum(1)
    half = centers.square().sum(1) / -2
    assignment = torch.empty(len(points), dtype=torch.int64, device=points.device)
    closeness = torch.empty_like(square)
    rows = max(1, memory // (len(centers) * points.element_size()))
    for start in range(0, len(points), rows):
        part = slice(start, start + rows)
        # x.c - |c|^2 / 2 is largest where |x - c|^2 is smallest and saves a pass over the block.
        closeness[part], assignment[part] = torch.addmm(half, points[part], centers.T).max(1)
    return assignment, (square - 2 * closeness).clamp_(min=0)


def _reseed(assignment: Tensor, distance: Tensor, k: int) -> Tensor:
    """The assignment with one far point moved into each empty cluster."""
    counts = torch.bincount(assignment, minlength=k)
    empty = (counts == 0).nonzero().squeeze(1).tolist()
    if not empty:
        return assignment
    assignment, distance = assignment.clone(), distance.clone()
    for cluster in empty:
        point = torch.where(counts[assignment] > 1, distance, -1).argmax()
        counts[assignment[point]] -= 1
        counts[cluster] = 1
        assignment[point], distance[point] = cluster, 0
    return assignment


def _means(points: Tensor, assignment: Tensor, k: int) -> Tensor:
    """The mean (k, d) of the points of each cluster; none is empty.

    Points are added cluster by cluster in order, so that a GPU, too, gives the same sums every time.
    """
    counts = torch.bincount(assignment, minlength=k)
    order = assignment.argsort(stable=True)
    return torch.segment_reduce(points[order], "mean", lengths=counts, unsafe=True)


def _counts(a: Labels, b: Labels) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """How often each pair of groups occurs (cells,), both groups of each such cell, and the sizes of all
    groups.
    """
    first = label_tensor("a", a, None, "the items")
    if not len(first):
        raise ValueError("a must hold at least one item, got none; pass one group number per item.")
    second = label_tensor("b", b, len(first), "a", first.device)
    rows, row = torch.unique(first, return_inverse=True)
    columns, column = torch.unique(second, return_inverse=True)
    # Only cells that occur are kept: a full table of 11,316 x 11,316 groups would take a gigabyte.
    cells, counts = torch.unique(row * len(columns) + column, return_counts=True)
    sizes = torch.bincount(row, minlength=len(rows)), torch.bincount(column, minlength=len(columns))
    return counts, cells // len(columns), cells % len(columns), *sizes


def nmi(a: Labels, b: Labels) -> float:
    """Normalised mutual information of two groupings, each (n,) integers: I(a; b) / ((H(a) + H(b)) / 2).

    0 for independent groupings, 1 for equal ones (whatever the group numbers); two groupings without any
    split are equal.

    >>> nmi([0, 0, 1, 1], [5, 5, 3, 3]), nmi([0, 0, 1, 1], [0, 1, 0, 1])
    (1.0, 0.0)
    """
    counts, row, column, rows, columns = _counts(a, b)
    if len(rows) == len(columns) == 1:
        return 1.0
    total = float(counts.sum())
    joint, first, second = counts.double() / total, rows.double() / total, columns.double() / total
    information = float((joint * (joint.log() - first[row].log() - second[column].log())).sum())
    entropy = float(-(first * first.log()).sum() - (second * second.log()).sum()) / 2
    return min(1.0, max(0.0, information / entropy))


def pair_f1(a: Labels, b: Labels) -> float:
    """F1 over pairs of items: how well "together in b" finds "together in a", or the other way round.

    ``a``, ``b`` (n,) integers. Of T pairs together in both, A in a and B in b: 2 T / (A + B), the harmonic
    mean of precision T / B and recall T / A; 0 if A = B = 0.

    >>> pair_f1([0, 0, 1, 1], [0, 0, 0, 1])
    0.4
    """
    counts, _, _, rows, columns = _counts(a, b)
    together, first, second = (int((size * (size - 1) // 2).sum()) for size in (counts, rows, columns))
    return 2 * together / (first + second) if first + second else 0.0

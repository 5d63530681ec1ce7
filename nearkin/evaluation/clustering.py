"""k-means on embeddings."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nearkin import checks
from nearkin.evaluation.inputs import Vectors, vector_tensor, whole
from nearkin.evaluation.neighbours import MEMORY
from nearkin.evaluation.seeding import draw_centers

# k-means stops once a round lowers the sum of squared distances by less than this share of it.
TOLERANCE = 1e-4

# Points and centers of one block of distances on a CPU: it stays in the cache.
SIDE_CPU = 1024


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
    distances are formed in blocks of ``memory`` bytes (at least 64 MiB for the start, 1 GiB on a GPU). With fewer distinct
    vectors than k some clusters stay empty.

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
    generator = torch.Generator().manual_seed(whole("kmeans", "seed", seed, 0, checks.SEED.high))
    with torch.no_grad(), torch.autocast(points.device.type, enabled=False):
        # Distances around the mean lose fewer digits than distances around a far origin.
        mean = points.mean(0)
        points = points - mean
        found = [_lloyd(points, draw_centers(points, k, generator), iterations, memory) for _ in range(starts)]
        best = min(found, key=lambda clusters: clusters.inertia)
        return best._replace(centers=best.centers + mean)


def _lloyd(points: Tensor, centers: Tensor, iterations: int, memory: int) -> Clusters:
    square = points.square().sum(1)
    every = torch.arange(len(points), device=points.device)
    assignment, closeness = _nearest(points, every, centers, memory)
    inertia = math.inf
    for _ in range(iterations):
        distance = (square - 2 * closeness).clamp_(min=0)
        spread = float(distance.sum(dtype=torch.float64))
        grouped = _reseed(assignment, distance, len(centers))
        # A round that had to fill an empty cluster has not settled yet.
        if grouped is assignment and inertia - spread <= TOLERANCE * spread:
            break
        inertia, before = spread, centers
        centers = _means(points, grouped, len(centers))
        moved = (centers != before).any(1)
        astray = moved[grouped] | (grouped != assignment)
        assignment, closeness = _assign_again(points, centers, moved, astray, assignment, closeness, memory)
        if torch.equal(grouped, assignment):
            break
    distance = (square - 2 * closeness).clamp_(min=0)
    return Clusters(assignment, centers, float(distance.sum(dtype=torch.float64)))


def _nearest(points: Tensor, rows: Tensor, centers: Tensor, memory: int) -> tuple[Tensor, Tensor]:
    """The nearest center of each of ``rows`` (r,) and its closeness x.c - |c|^2 / 2 (r,), in blocks.

    Closeness is largest where |x - c|^2 is smallest, and saves a pass over the block.
    """
    half = centers.square().sum(1) / -2
    assignment = torch.empty_like(rows)
    closeness = points.new_empty(len(rows))
    side = max(1, math.isqrt(memory // (2 * points.element_size())))
    side = min(side, SIDE_CPU) if points.device.type == "cpu" else side
    buffer = points.new_empty(min(side, len(rows)) * min(side, len(centers)))
    for start in range(0, len(rows), side):
        some = points[rows[start : start + side]]
        found, where = some.new_full((len(some),), -math.inf), torch.zeros_like(rows[start : start + side])
        for first in range(0, len(centers), side):
            these = slice(first, min(first + side, len(centers)))
            block = buffer[: len(some) * (these.stop - first)].view(len(some), -1)
            best, which = torch.addmm(half[these], some, centers[these].T, out=block).max(1)
            # Only a larger value wins, so that the lower center keeps a tie.
            where = torch.where(best > found, which + first, where)
            found = torch.maximum(best, found)
        closeness[start : start + side], assignment[start : start + side] = found, where
    return assignment, closeness


def _assign_again(
    points: Tensor, centers: Tensor, moved: Tensor, astray: Tensor, assignment: Tensor, closeness: Tensor, memory: int
) -> tuple[Tensor, Tensor]:
    """The nearest centers after some of them ``moved`` (k,): equal to a new search among all, for less.

    Points that are ``astray`` (n,) have lost their center. Of the others, whose center stayed, only a center that
    moved can have become nearer.
    """
    assignment, closeness = assignment.clone(), closeness.clone()
    rows = astray.nonzero().squeeze(1)
    assignment[rows], closeness[rows] = _nearest(points, rows, centers, memory)
    rows, numbers = (~astray).nonzero().squeeze(1), moved.nonzero().squeeze(1)
    if len(rows) and len(numbers):
        which, value = _nearest(points, rows, centers[numbers], memory)
        which = numbers[which]
        nearer = (value > closeness[rows]) | ((value == closeness[rows]) & (which < assignment[rows]))
        assignment[rows] = torch.where(nearer, which, assignment[rows])
        closeness[rows] = torch.where(nearer, value, closeness[rows])
    return assignment, closeness


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

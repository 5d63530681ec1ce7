"""First centers for k-means: greedy k-means++, with several centers for one pass over the points."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The most centers that one pass over the points provides candidates for, and the most distances held for that. Neither
# depends on the memory a caller grants: on one kind of device the same seed must draw the same centers. A GPU has more
# memory, and a pass over few candidates there waits for the points to come from it.
CENTERS = 16
DISTANCES, DISTANCES_GPU = 2**24, 2**28

# Points of one matrix product: their distances from some hundred candidates stay in the cache of a processor.
PIECE = 1024


def draw_centers(points: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Centers (k, d), each one of the ``points`` (n, d): the first drawn evenly, each next one the best of 2 + log k
    candidates drawn in proportion to the squared distance from the centers so far.

    Distances of many candidates at once cost far less than one by one. So candidates for several centers are drawn by
    the distances before a pass, and each is kept, when its turn comes, with the share of its squared distance that the
    centers since then have left: what is kept is distributed as if it were drawn only then.
    """
    n, device = len(points), points.device
    trials = 2 + int(math.log(k))
    square = points.square().sum(1)
    chosen = torch.randint(n, (1,), generator=generator).to(device)
    nearest = _squared_distances(points, square, chosen, points.new_empty(1, n)).squeeze(0)
    held = DISTANCES if device.type == "cpu" else DISTANCES_GPU
    most = max(1, min(CENTERS, held // (n * trials)))
    distances = points.new_empty(min(most, k) * trials, n)
    while len(chosen) < k:
        # Early on each center changes the distances much, and candidates drawn before it would be lost.
        turns = min(most, 1 + len(chosen) // 8, k - len(chosen))
        candidates = _draw(nearest, turns * trials, generator)
        luck = torch.rand(len(candidates), generator=generator, dtype=torch.float64).to(device)
        bar = luck * nearest[candidates]
        _squared_distances(points, square, candidates, distances)
        added = []
        begin = 0
        for _ in range(turns):
            kept = (bar[begin:] < nearest[candidates[begin:]]).nonzero().squeeze(1)[:trials] + begin
            # The first draws after a pass are always kept; where points are no farther than rounding, any will do.
            if len(kept) < trials and begin:
                break
            kept = kept if len(kept) else torch.zeros(1, dtype=torch.int64, device=device)
            left = torch.minimum(distances[kept], nearest)
            winner = left.sum(1, dtype=torch.float64).argmin()
            added.append(candidates[kept[winner]])
            nearest = left[winner]
            begin = int(kept[-1]) + 1
        chosen = torch.cat([chosen, torch.stack(added)])
    return points[chosen]


def _draw(weights: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Numbers (count,) drawn in proportion to ``weights`` (n,)."""
    reach = weights.double().cumsum(0)
    draws = torch.rand(count, generator=generator, dtype=torch.float64).to(weights.device) * reach[-1]
    return torch.searchsorted(reach, draws, right=True).clamp(max=len(weights) - 1)


def _squared_distances(points: Tensor, square: Tensor, rows: Tensor, result: Tensor) -> Tensor:
    """Write squared distances of the points ``rows`` (c,) from all points, never negative, into ``result`` (c, n)."""
    centers, own = points[rows], square[rows, None]
    piece = PIECE if points.device.type == "cpu" else len(points)
    for start in range(0, len(points), piece):
        part = slice(start, start + piece)
        block = result[: len(rows), part]
        if piece == len(points):  # the whole result, which can be written where it is
            torch.addmm(square, centers, points.T, alpha=-2, out=block).add_(own).clamp_(min=0)
        else:
            torch.clamp(torch.addmm(square[part], centers, points[part].T, alpha=-2).add_(own), min=0, out=block)
    return result

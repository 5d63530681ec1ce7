"""Structured clustering loss (facility location)."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.whole import Whole
from nearkin.pairs import number
from nearkin.space import UNIT_DISTANCE, Space

# Candidates scored at once, so that memory stays at candidates x samples.
CHUNK = 1024
PASSES = 10
# Scores closer than this are equal: members of a pair, say, serve it equally well.
TIE = 1e-12


def choose_medoids(distance: Tensor, classes: Tensor, weights: Tensor, number: int, gamma: float) -> list[int]:
    """Columns S that nearly maximise F(S) + gamma (1 - NMI): greedy selection, then pairwise refinement.

    Greedy adds the column with the best score (lowest index on ties) until there are ``number``. Refinement passes over
    the members in order of insertion and replaces one by a column that scores better by more than 1e-12, until a whole
    pass changes nothing or after ten passes. A sample belongs to its nearest medoid, the earliest on ties.
    """
    chosen: list[int] = []
    for _ in range(min(number, distance.shape[1])):
        scores = _scores(distance, classes, weights, chosen, gamma, None)
        scores[chosen] = -torch.inf
        chosen.append(_best(scores))
    for _ in range(PASSES):
        changed = False
        for place in range(len(chosen)):
            scores = _scores(distance, classes, weights, chosen, gamma, place)
            now = float(scores[chosen[place]])
            scores[chosen] = -torch.inf
            best = _best(scores)
            if float(scores[best]) > now + TIE:
                chosen[place], changed = best, True
        if not changed:
            break
    return chosen


def _best(scores: Tensor) -> int:
    """The first of the best scores."""
    return int((scores >= scores.max() - TIE).to(torch.int8).argmax())


def _first_best(sums: Tensor) -> Tensor:
    return sums[_best(sums.detach())]


def _scores(
    distance: Tensor, classes: Tensor, weights: Tensor, chosen: list[int], gamma: float, place: int | None
) -> Tensor:
    """Score of S for every column put at ``place`` of it (at its end for None)."""
    place = len(chosen) if place is None else place
    before, after = chosen[:place], chosen[place + 1 :]
    early, early_at = _nearest(distance, before, 0)
    late, late_at = _nearest(distance, after, place + 1)
    size = max(place + 1, len(chosen))
    parts = []
    for start in range(0, distance.shape[1], CHUNK):
        new = distance[:, start : start + CHUNK].T  # (candidates, samples)
        # The earliest of equals wins: first those before the place, then the candidate, then those after.
        nearest, at = torch.where(new < early, new, early), torch.where(new < early, place, early_at)
        at = torch.where(late < nearest, late_at, at)
        nearest = torch.minimum(nearest, late)
        parts.append(-(nearest * weights).sum(1) + gamma * (1 - nmi(at, classes, weights, size)))
    return torch.cat(parts)


def _nearest(distance: Tensor, columns: list[int], offset: int) -> tuple[Tensor, Tensor]:
    if not columns:
        return distance.new_full((len(distance),), torch.inf), torch.zeros(
            len(distance), dtype=torch.long, device=distance.device
        )
    value, index = torch.stack([distance[:, j] for j in columns], 1).min(1)
    # min does not promise the first of equals.
    index = (distance[:, columns] == value[:, None]).to(torch.int8).argmax(1)
    return value, index + offset


def nmi(assigned: Tensor, classes: Tensor, weights: Tensor, size: int) -> Tensor:
    """Normalised mutual information (arithmetic mean) of several assignments (rows) with the classes."""
    rows, number = len(assigned), int(classes.max()) + 1
    table = weights.new_zeros(rows, size * number)
    table.scatter_add_(1, assigned * number + classes, weights.expand(rows, -1))
    table = table.view(rows, size, number) / weights.sum()
    cluster, label = table.sum(2), table.sum(1)
    entropy = -torch.xlogy(cluster, cluster).sum(1) - torch.xlogy(label, label).sum(1)
    joint = torch.xlogy(table, table).sum((1, 2)) + entropy
    return torch.where(entropy > 1e-12, 2 * joint / entropy.clamp(min=1e-12), torch.ones_like(entropy))


class StructClust(PairLoss):
    """Makes the best clustering by medoids the true one (Song 2017, [RLL 6-7]).

    ``[max_S {F(S) + gamma (1 - NMI(y, g(S)))} - F~]+`` with ``F(S) = -sum_i min_{j in S} d_ij`` and
    ``F~ = sum_c max_{j in c} -sum_{i in c} d_ij``; |S| is the number of classes in the batch. S is found by greedy
    selection and pairwise refinement and is a constant of the gradient. A miner leaves out samples without mined pair.

    >>> loss = StructClust()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.6563)
    """

    name = "struct_clust"
    limits = {"gamma": checks.NOT_NEGATIVE}
    rowwise = False
    why = "it scores one clustering of the whole batch"

    def __init__(self, *, gamma: float = 1.0, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.gamma = gamma

    @property
    def space(self) -> Space:
        return UNIT_DISTANCE

    def whole(self, pairs: Whole) -> Tensor:
        distance, weights = pairs.matrix, pairs.anchor_weights
        classes, column_classes = pairs.classes()
        if pairs.loss.chosen is not None:
            keep = number(pairs.mined.positive) + number(pairs.mined.negative) > 0
            distance, weights, classes = distance[keep], weights[keep], classes[keep]
        if not len(classes) or not torch.isfinite(distance.detach()).all():
            return distance.sum() * 0
        present = torch.unique(classes)
        with torch.no_grad():
            medoids = choose_medoids(distance, classes, weights, len(present), self.gamma)
            _, at = _nearest(distance, medoids, 0)
            slack = self.gamma * (1 - nmi(at[None], classes, weights, len(medoids))[0])
        score = -(distance.gather(1, torch.tensor(medoids, device=at.device)[at][:, None]).squeeze(1) * weights).sum()
        truth = distance.new_zeros(())
        for value in present:
            members, mates = classes == value, column_classes == value
            if bool(mates.any()):
                truth = truth + _first_best(-(distance[members][:, mates] * weights[members, None]).sum(0))
        return torch.relu(score + slack - truth)

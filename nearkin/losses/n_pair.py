"""N-pair loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.derivatives import once
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.batch import Batch
from nearkin.miners import Mined
from nearkin.pairs import Mask, split
from nearkin.reductions import counted_logsumexp, log1pexp
from nearkin.space import DOT, Space
from nearkin.vectors import squares


def n_pair(dot: Tensor, positive: Mask, negative: Mask) -> Tensor:
    """log(1 + sum over k in N, j in P of exp(f_i.f_k - f_i.f_j)) of each row [DD 2.22]."""
    near, p, far, n = split(dot, positive, negative, alone=True)
    return log1pexp(counted_logsumexp(far, n) + counted_logsumexp(-near, p))


class _Sides(torch.autograd.Function):
    """Two selections that together hold every row once, so that their gradients fill one batch without zeros or sums."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(first, second)
        return vectors.index_select(0, first), vectors.index_select(0, second)

    @staticmethod
    @once
    def backward(ctx: Any, first_grad: Tensor, second_grad: Tensor) -> tuple[Tensor, None, None]:
        first, second = ctx.saved_tensors
        grad = first_grad.new_empty(len(first) + len(second), first_grad.shape[1])
        return grad.index_copy_(0, first, first_grad).index_copy_(0, second, second_grad), None, None


class NPair(PairLoss):
    """Pushes every negative's inner product below every positive's, and keeps embeddings short. Raw embeddings.

    form "all" (default): ``log(1 + sum_{k in N_i, j in P_i} exp(f_i.f_k - f_i.f_j)) + l2 |f_i|^2`` [DD 2.22].
    form "mc": batches of N classes x 2; anchors are the first of each pair, negatives the other classes' second
    elements only [RLL 2, NRA 4]. As printed, DD 2.22 includes k = i; here it does not.

    >>> loss = NPair()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.1186)
    """

    name = "n_pair"
    limits = {"form": ("all", "mc"), "l2": checks.NOT_NEGATIVE}

    def __init__(self, *, form: str = "all", l2: float = 0.02, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        self.form = form
        self.l2 = l2

    @property
    def space(self) -> Space:
        return DOT

    def extra(self, queries: Tensor, labels: Tensor | None) -> tuple[Tensor, ...]:
        return (squares(queries),)

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return n_pair(matrix, mined.positive, mined.negative) + self.l2 * extra[0]

    @property
    def splits(self) -> bool:
        return self.form == "all"  # "mc" finds its pairs in the whole batch

    def arranged(self, batch: Batch) -> Batch:
        """With form "mc" the first members of the classes are compared with the second ones."""
        if self.form == "all" or batch.gallery is not None:
            return batch
        if batch.labels is None or batch.positive is not None:
            raise ValueError(
                "labels must be given for n_pair form='mc', got masks; pass labels, or a gallery of second elements."
            )
        order = pairs_in_order(batch.labels)
        first, second = order[0::2], order[1::2]
        anchors, partners = _Sides.apply(batch.embeddings, first, second)
        weights = None if batch.weights is None else batch.weights[first]
        return Batch(anchors, batch.labels[first], partners, batch.labels[second], weights=weights)


def pairs_in_order(labels: Tensor) -> Tensor:
    """Rows of a batch of N classes x 2, class by class: the first member, then the second."""
    ordered, order = labels.sort(stable=True)
    if labels.device.type == "cpu":
        first, second = ordered[0::2], ordered[1::2]
        if len(labels) % 2 or not torch.equal(first, second) or bool((first[1:] == second[:-1]).any()):
            _, counts = torch.unique(labels, return_counts=True)
            raise ValueError(
                f"labels must hold every class exactly twice for n_pair form='mc', got a class "
                f"{int(counts[counts != 2][0])} times; use the n_pair sampler or form='all'."
            )
    return order

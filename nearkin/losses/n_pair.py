"""N-pair loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Plan, Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.whole import Whole
from nearkin.miners import Mined
from nearkin.pairs import DOT, Mask, Space, counted_logsumexp, log1pexp, split


def n_pair(dot: Tensor, positive: Mask, negative: Mask) -> Tensor:
    """log(1 + sum over k in N, j in P of exp(f_i.f_k - f_i.f_j)) of each row [DD 2.22]."""
    near, p, far, n = split(dot, positive, negative)
    return log1pexp(counted_logsumexp(far, n) + counted_logsumexp(-near, p))


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
        return (queries.square().sum(1),)

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return n_pair(matrix, mined.positive, mined.negative) + self.l2 * extra[0]

    def plan(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        gallery: Tensor | None = None,
        gallery_labels: Tensor | None = None,
        **options: Any,
    ) -> Plan | Whole:
        if self.form == "mc" and gallery is None:
            if labels is None or options.get("positive") is not None:
                raise ValueError(
                    "labels must be given for n_pair form='mc', got masks; pass labels, or a gallery of "
                    "second elements."
                )
            self._check_batch(
                embeddings,
                labels,
                None,
                None,
                options.get("self_index"),
                None,
                None,
                options.get("valid"),
                options.get("weights"),
            )
            order = pairs_in_order(labels)
            anchors, partners = embeddings.index_select(0, order).unflatten(0, (-1, 2)).unbind(1)
            first, second = order[0::2], order[1::2]
            if options.get("weights") is not None:
                options["weights"] = options["weights"][first]
            return super().plan(anchors, labels[first], partners, labels[second], **options)
        return super().plan(embeddings, labels, gallery, gallery_labels, **options)


def pairs_in_order(labels: Tensor) -> Tensor:
    """Rows of a batch of N classes x 2, class by class: the first member, then the second."""
    if labels.device.type == "cpu":
        _, counts = torch.unique(labels, return_counts=True)
        if bool((counts != 2).any()):
            raise ValueError(
                f"labels must hold every class exactly twice for n_pair form='mc', got a class "
                f"{int(counts[counts != 2][0])} times; use the n_pair sampler or form='all'."
            )
    return labels.argsort(stable=True)

"""Lifted structure loss."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.whole import Whole
from nearkin.miners import Mined
from nearkin.pairs import FAR, Mask, take
from nearkin.reductions import counted_logsumexp, ratio
from nearkin.sides import Side, logsumexps
from nearkin.space import Space


def lifted_structure_generalized(similarity: Tensor, positive: Mask, negative: Mask, *, margin: float = 0.5) -> Tensor:
    """[log sum_P e^(margin - s) + log sum_N e^s]+ of each row; 0 where a row lacks either set [DD 2.21]."""
    pull, push = logsumexps(similarity, positive, negative, pull=Side(-1, margin), push=Side(1, 0))
    return torch.relu(pull + push)  # an empty set is -inf, which the hinge makes 0


class LiftedStructure(PairLoss):
    """Pulls each positive pair inside the shell that all negatives of both its members form.

    form "original" (default): ``1/(2|P|) sum_{(i,j) in P} ([log(sum_{N_i} e^{margin - d_ik} + sum_{N_j} e^{margin -
    d_jl}) + d_ij]+)^2``, P the unordered positive pairs, margin 1.0 [NRA 3]; RLL 3 drops the square. ``normalize=False``
    uses raw embeddings. Not row-wise.
    form "generalized": ``[log sum_P e^{margin - s_ij} + log sum_N e^{s_ik}]+``, margin 0.5 [DD 2.21], row-wise.

    >>> loss = LiftedStructure(form="generalized")
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.1931)
    """

    name = "lifted_structure"
    fixed = {"form": "each form has engines and a margin of its own"}
    limits = {
        "form": ("original", "generalized"),
        "margin": checks.ANY,
        "normalize": (True, False),
    }
    why = "the original form joins the negatives of both members of a pair; form='generalized' is row-wise"

    def __init__(
        self, *, form: str = "original", margin: float | None = None, normalize: bool = True, **common: Unpack[Common]
    ) -> None:
        super().__init__(**common)
        self.form = form
        self.margin = (0.5 if form == "generalized" else 1.0) if margin is None else margin
        self.normalize = normalize
        self.rowwise = form == "generalized"

    def check_together(self) -> None:
        super().check_together()
        if not self.normalize and self.form == "generalized":
            raise ValueError(
                "lifted_structure: normalize=False needs form='original', got 'generalized'; "
                "cosines are of unit vectors."
            )

    @property
    def space(self) -> Space:
        return Space(unit=self.normalize, distance=self.form == "original")

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return lifted_structure_generalized(matrix, mined.positive, mined.negative, margin=self.margin)

    def whole(self, pairs: Whole) -> Tensor:
        shell = counted_logsumexp(*take(self.margin - pairs.matrix, pairs.mined.negative)).clamp(min=-FAR)
        column_shell = (
            shell
            if pairs.own
            else counted_logsumexp(*take(self.margin - pairs.column_matrix, pairs.column_mined.negative)).clamp(
                min=-FAR
            )
        )
        positive = pairs.once(pairs.mined.positive)
        i, j = positive.nonzero(as_tuple=True)
        # A pair without any negative stays far below 0: it has nothing to be inside of and costs nothing.
        inside = torch.relu(torch.logaddexp(shell[i], column_shell[j]) + pairs.matrix[i, j])
        weight = positive[i, j] * pairs.anchor_weights[i]
        return ratio((inside.square() * weight).sum(), 2 * weight.sum())

"""Ranked list loss."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor

from nearkin import checks, engine, kernels
from nearkin.derivatives import once
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import FAR, Few, Mask, above, below, spread
from nearkin.reductions import hide, ratio, safe_exp_
from nearkin.space import snap, through_unit_distance_, unit_distance

# Exponents down to minus this are far from vanishing in float32; distances are at most 2.
EXP_RANGE = 60.0


class _RankedList(torch.autograd.Function):
    """Value and slope of each row at once, in few matrices: on a CPU a fresh one costs as much as three passes."""

    @staticmethod
    def forward(
        ctx: Any, matrix: Tensor, columns: Tensor | None, counts: Tensor, negative: Tensor, settings: Settings
    ) -> Tensor:
        ctx.save_for_backward(matrix, columns, counts, negative)
        # The first backward scales the slope in place, a second one forms it again.
        value, ctx.slope = _value_and_slope(matrix, columns, counts, negative, settings)
        ctx.settings = settings
        return value

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        matrix, columns, counts, negative = ctx.saved_tensors
        slope, ctx.slope = ctx.slope, None
        if slope is None:
            _, slope = _value_and_slope(matrix, columns, counts, negative, ctx.settings)
        return slope.mul_(grad[:, None]), None, None, None, None


class Settings(NamedTuple):
    alpha: float
    inside: float
    temperature: float
    balance: float
    cosine: bool


def _value_and_slope(
    matrix: Tensor, columns: Tensor | None, counts: Tensor, negative: Tensor, settings: Settings
) -> tuple[Tensor, Tensor]:
    """Values (b,) and their derivatives (b, m) for the matrix; ``columns`` None: ``counts`` is a matrix of positives."""
    alpha, inside, temperature, balance, cosine = settings
    distance = unit_distance(matrix) if cosine else matrix
    near = distance if columns is None else distance.gather(1, columns)
    outer = above(near, inside).mul_(counts)
    number = outer.sum(1)
    pull = ratio(((near - inside) * outer).sum(1), number)
    weight = below(distance, alpha).mul_(negative)
    # Weights are normalised below, so the factor e^(temperature alpha) does not matter.
    scratch = distance * -temperature
    if temperature * 2 <= EXP_RANGE:
        scratch.exp_()
    else:
        scratch = hide(scratch, weight)
        top = scratch.amax(1, keepdim=True)
        safe_exp_(scratch.sub_(top.masked_fill_(top < -FAR / 2, 0)))
    weight.mul_(scratch)
    total = weight.sum(1)
    push = alpha * torch.sign(total) - ratio(torch.mul(distance, weight, out=scratch).sum(1), total)
    # The weights become the slope, pull and push together.
    weight.mul_(ratio(torch.full_like(total, -balance), total)[:, None])
    outer.mul_(ratio(torch.ones_like(number), number)[:, None])
    slope = weight.add_(outer) if columns is None else weight.scatter_add_(1, columns, outer)
    return pull + balance * push, through_unit_distance_(slope, distance, matrix) if cosine else slope


def ranked_list(
    matrix: Tensor,
    positive: Mask,
    negative: Mask,
    *,
    alpha: float = 1.2,
    margin: float = 0.4,
    temperature: float = 10.0,
    balance: float = 1.0,
    cosine: bool = False,
) -> Tensor:
    """L_P + balance L_N of each row of distances, or of cosines of unit vectors, which are turned into distances [RLL 8-14].

    L_P is the mean of d - (alpha - margin) over the positives farther than alpha - margin; L_N the mean of alpha - d
    over the negatives nearer than alpha, weighted by the constant exp(temperature (alpha - d)).
    """
    columns, counts = positive if isinstance(positive, Few) else (None, positive)
    settings = Settings(alpha, alpha - margin, temperature, balance, cosine)
    return _RankedList.apply(matrix, columns, counts, spread(negative, matrix.detach()), settings)


class RankedList(PairLoss):
    """Pulls positives into a ball of radius ``alpha - margin`` around the query, pushes negatives out to ``alpha``.

    Each set is ranked: only non-trivial members count, and nearer negatives weigh more,
    ``w_ij = exp(temperature (alpha - d_ij))``, normalised over the set. ``L_i = L_P + balance L_N`` [RLL 8-14].
    The weights are constants; so are the gallery points (the paper's form) unless ``gallery_gradient=True``.
    ``temperature`` multiplies, as in the paper: the one exception to "temperature divides". 0 weighs all non-trivial
    negatives equally, a large one mines the hardest. RLL 12 prints a sum over |N*|, meant is N*.

    >>> loss = RankedList()
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.6142)
    """

    name = "ranked_list"
    limits = {
        "alpha": checks.POSITIVE,
        "margin": checks.NOT_NEGATIVE,
        "temperature": checks.NOT_NEGATIVE,
        "balance": checks.NOT_NEGATIVE,
        "gallery_gradient": (True, False),
    }

    def __init__(
        self,
        *,
        alpha: float = 1.2,
        margin: float = 0.4,
        temperature: float = 10.0,
        balance: float = 1.0,
        gallery_gradient: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self.alpha = alpha
        self.margin = margin
        self.temperature = temperature
        self.balance = balance
        self.gallery_gradient = gallery_gradient

    @property
    def column_gradient(self) -> bool:  # type: ignore[override]
        return self.gallery_gradient

    @property
    def kernel(self) -> engine.Kernel | None:
        if self.temperature * 2 > EXP_RANGE or not kernels.usable():
            return None
        from nearkin.losses.ranked_list_kernel import step

        return functools.partial(
            step,
            alpha=self.alpha,
            inside=self.alpha - self.margin,
            temperature=self.temperature,
            balance=self.balance,
            snap=snap(torch.float32),
        )

    def check_together(self) -> None:
        super().check_together()
        if self.margin > self.alpha:
            raise ValueError(
                f"ranked_list: margin must be at most alpha = {self.alpha:g}, got {self.margin:g}: the ball "
                f"of positives has radius alpha - margin; lower margin or raise alpha."
            )

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return ranked_list(
            matrix,
            mined.positive,
            mined.negative,
            alpha=self.alpha,
            margin=self.margin,
            temperature=self.temperature,
            balance=self.balance,
            cosine=True,
        )

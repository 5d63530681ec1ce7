"""Multi-similarity loss, also known as RAW."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from torch import Tensor

from nearkin import checks, miners
from nearkin.engine import Sizes
from nearkin.losses.base import Common, PairLoss
from nearkin.miners import Mined
from nearkin.pairs import Mask
from nearkin.sides import Side, logsumexps


def multi_similarity(
    similarity: Tensor, positive: Mask, negative: Mask, *, alpha: float = 2.0, beta: float = 50.0, gamma: float = 0.5
) -> Tensor:
    """1/alpha log(1 + sum_P e^(-alpha (s - gamma))) + 1/beta log(1 + sum_N e^(beta (s - gamma))) of each row."""
    sides = {"pull": Side(-alpha, gamma), "push": Side(beta, gamma)}
    pull, push = logsumexps(similarity, positive, negative, **sides, one=True)
    return pull / alpha + push / beta


class MultiSimilarity(PairLoss):
    """Weighs each pair by its own similarity and by the similarities of the anchor's other pairs.

    ``l_i = 1/alpha log(1 + sum_P~ e^{-alpha (s - gamma)}) + 1/beta log(1 + sum_N~ e^{beta (s - gamma)})`` [DD 2.24];
    the same as RAW [UV 17]. The sets are mined by "vthm" with margin ``epsilon``; ``epsilon=None`` takes all pairs; a
    ``miner`` of your own replaces vthm.

    >>> loss = MultiSimilarity(epsilon=None)
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.6566)
    """

    name = "multi_similarity"
    mined_by = ("miner", "epsilon")
    limits = {
        "alpha": checks.POSITIVE,
        "beta": checks.POSITIVE,
        "gamma": checks.ANY,
        "epsilon": checks.Limit(low=0, none=True),
    }

    def __init__(
        self,
        *,
        alpha: float = 2.0,
        beta: float = 50.0,
        gamma: float = 0.5,
        epsilon: float | None = 0.1,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.epsilon = epsilon
        self.chosen = self.mining(vars(self))

    def mining(self, values: Mapping[str, Any]) -> miners.Miner | None:
        given, epsilon = super().mining(values), values.get("epsilon")
        return miners.Miner("vthm", {"margin": epsilon}) if given is None and epsilon is not None else given

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> Tensor:
        return multi_similarity(
            matrix, mined.positive, mined.negative, alpha=self.alpha, beta=self.beta, gamma=self.gamma
        )

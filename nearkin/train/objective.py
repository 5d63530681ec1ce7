"""What is minimised: one loss per level of the network, over the batches of all processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nearkin import losses
from nearkin.distributed import Ranks
from nearkin.memory import CrossBatchMemory
from nearkin.vectors import unit


class Objective(nn.Module):
    """The sum of one loss for each level; each has its own proxies and its own memory.

    With several processes the values of all of them add up to the loss of the whole batch, and so do their gradients.
    A row-wise pair loss compares this process's rows with the columns of all; other losses are computed whole by every
    process, which counts its part.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        *,
        levels: tuple[str, ...],
        dim: int,
        classes: int,
        memory: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.levels = nn.ModuleDict()
        for number, level in enumerate(levels):
            made = learner(name, dict(settings), dim, classes, (seed + number) % 2**63)
            self.levels[level] = CrossBatchMemory(made, dim=dim, size=memory) if memory else made

    def expect(self, members: int | None) -> None:
        """No batch has more images of a class than this; None: not known."""
        for loss in self.levels.values():
            if isinstance(loss, losses.PairLoss):  # what is in a memory nobody knows
                loss.members = members

    def forward(self, embeddings: Mapping[str, Tensor], labels: Tensor, ranks: Ranks, counts: list[int]) -> Tensor:
        """This process's part of the loss; ``counts``: rows of every process."""
        gathered = ranks.constant(labels, counts)
        parts = [
            self._part(loss, embeddings[level], labels, gathered, ranks, counts) for level, loss in self.levels.items()
        ]
        return torch.stack(parts).sum()

    def _part(
        self, loss: nn.Module, own: Tensor, labels: Tensor, gathered: Tensor, ranks: Ranks, counts: list[int]
    ) -> Tensor:
        if ranks.ranks == 1:
            return loss(own, labels)
        columns = ranks.gather(own, counts)
        if isinstance(loss, losses.PairLoss) and loss.splits:
            start = sum(counts[: ranks.rank])
            index = torch.arange(start, start + len(own), device=own.device)
            return loss(own, labels, columns, gathered, self_index=index, total=ranks.total)
        return loss(columns, gathered) / ranks.ranks


def learner(name: str, settings: dict[str, Any], dim: int, classes: int, seed: int) -> Any:
    """The loss of that name; what it learns is drawn from the seed."""
    kind = losses.LOSSES[name]
    if issubclass(kind, losses.ProxyLoss):
        settings = {**settings, "classes": classes, "dim": dim}
    elif "seed" not in settings:
        settings = {"seed": seed, **settings}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return losses.create(name, **settings)


@torch.no_grad()
def spread(embeddings: Mapping[str, Tensor]) -> Tensor:
    """How far the embeddings of a batch are from being one and the same: 1 - |mean of the unit vectors|^2, of the level
    where it is least. 0 is collapse; with frozen noise it is near 1.

    >>> spread({"only": torch.eye(4)})
    tensor(0.7500)
    """
    found = [1 - unit(part.detach().float()).mean(0).square().sum() for part in embeddings.values()]
    return torch.stack(found).min()

"""Which losses ``engine.py`` measures on a GPU, with what batches, counterparts and bare matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from batches import DIM, clustered
from torch import Tensor

from nearkin import losses

IMAGES = 4
# Loss, settings, how many matrix products it needs, and its counterpart: class, options, miner.
Counterpart = tuple[str, dict[str, Any], tuple[str, dict[str, Any]] | None]
LARGE: dict[str, tuple[str, dict[str, Any], int, Counterpart | None]] = {
    "ranked_list": ("ranked_list", {}, 2, ("RankedListLoss", {"margin": 0.4, "Tn": 10, "alpha": 1.2}, None)),
    "multi_similarity": (
        "multi_similarity",
        {},
        3,
        ("MultiSimilarityLoss", {"alpha": 2, "beta": 50, "base": 0.5}, ("MultiSimilarityMiner", {"epsilon": 0.1})),
    ),
    "contrastive": (
        "contrastive",
        {},
        3,
        ("ContrastiveLoss", {"pos_margin": 1, "neg_margin": 0.5, "distance": "CosineSimilarity"}, None),
    ),
    "margin": ("margin", {"miner": None}, 3, ("MarginLoss", {}, None)),
    "binomial_deviance": ("binomial_deviance", {}, 3, None),
    "lifted_structure": (
        "lifted_structure",
        {"form": "generalized"},
        3,
        ("GeneralizedLiftedStructureLoss", {}, None),
    ),
    "supcon": ("supcon", {}, 3, ("SupConLoss", {"temperature": 0.1}, None)),
    "proxy_anchor": ("proxy_anchor", {}, 3, ("ProxyAnchorLoss", {"margin": 0.1, "alpha": 32}, None)),
    # Last, since the other library's miner takes minutes for a large batch.
    "margin, distance_weighted": ("margin", {}, 3, ("MarginLoss", {}, ("DistanceWeightedMiner", {}))),
}


def batch(n: int, seed: int = 0, dtype: torch.dtype = torch.bfloat16) -> tuple[Tensor, Tensor]:
    embeddings, labels = clustered(n, IMAGES, "cuda", seed)
    return embeddings.to(dtype).requires_grad_(True), labels


def make(entry: str, n: int, engine: str) -> Any:
    name, settings, *_ = LARGE[entry]
    proxy = {"classes": n // IMAGES, "dim": DIM} if issubclass(losses.LOSSES[name], losses.ProxyLoss) else {}
    loss = losses.create(name, engine=engine, **settings, **proxy).cuda()
    if entry == "margin, distance_weighted":
        loss.members = IMAGES  # as a sampler tells it, so that nobody has to count
    return loss


def theirs(entry: str, n: int) -> Callable[..., Tensor] | None:
    found = LARGE[entry][3]
    if found is None:
        return None
    import pytorch_metric_learning.distances as distances
    import pytorch_metric_learning.losses as library
    import pytorch_metric_learning.miners as miners

    kind, options, miner = found
    if "distance" in options:
        options = options | {"distance": getattr(distances, options["distance"])()}
    if kind == "ProxyAnchorLoss":
        options = options | {"num_classes": n // IMAGES, "embedding_size": DIM}
    loss = getattr(library, kind)(**options).cuda()
    if miner is None:
        return loss
    mined = getattr(miners, miner[0])(**miner[1])
    return lambda embeddings, labels: loss(embeddings, labels, mined(embeddings, labels))


@dataclass
class Step:
    """One call of a loss, forward and backward."""

    loss: Callable[..., Tensor]
    embeddings: Tensor
    labels: Tensor

    @property
    def leaves(self) -> list[Tensor]:
        return [self.embeddings, *getattr(self.loss, "parameters", list)()]

    def clear(self) -> None:
        for leaf in self.leaves:
            leaf.grad = None

    def __call__(self) -> None:
        self.clear()
        self.loss(self.embeddings, self.labels).backward()


def matrix_bytes(n: int, columns: int | None = None) -> int | None:
    """Bytes that one bare matrix product of everybody with everybody takes; None where there is no room."""
    rows = torch.randn(n, DIM, device="cuda", dtype=torch.bfloat16)
    other = rows if columns is None else torch.randn(columns, DIM, device="cuda", dtype=torch.bfloat16)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    try:
        torch.mm(rows, other.T)
    except torch.OutOfMemoryError:
        return None
    return torch.cuda.max_memory_allocated() - before


def products(n: int, number: int, columns: int | None = None) -> Callable[[], None]:
    """The bare matrix products, whole or in blocks where the matrix would be larger than 2 GiB."""
    rows = torch.randn(n, DIM, device="cuda", dtype=torch.bfloat16)
    other = rows if columns is None else torch.randn(columns, DIM, device="cuda", dtype=torch.bfloat16)
    block = min(n, max(128, 2**30 // len(other)))
    matrix = torch.empty(block, len(other), device="cuda", dtype=torch.bfloat16)
    grad, total = torch.empty_like(rows), torch.zeros_like(other)

    def run() -> None:
        for begin in range(0, n, block):
            part = rows[begin : begin + block]
            found = torch.mm(part, other.T, out=matrix[: len(part)])
            torch.mm(found, other, out=grad[begin : begin + block])
            if number > 2:
                total.addmm_(found.T, part)

    return run

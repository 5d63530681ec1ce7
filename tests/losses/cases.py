"""The table of every loss in every form, walked over by the contract, reference and engine tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from nearkin import losses

CLASSES, DIM = 5, 3


@dataclass(frozen=True)
class Case:
    """A loss with settings. ``jumps``: its mined sets change abruptly at ties, so ties are kept out of comparisons.
    ``reference``: settings of the reference where they differ; ``mined``: the reference miner that goes first."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    jumps: bool = False
    mined: tuple[str, dict[str, Any]] | None = None
    centers: int | None = None
    random: bool = False

    @property
    def id(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in self.settings.items())])

    @property
    def proxy(self) -> bool:
        return issubclass(losses.LOSSES[self.name], losses.ProxyLoss)

    def make(self, dim: int = DIM, classes: int = CLASSES, **more: Any) -> Any:
        settings = dict(self.settings) | more
        if self.proxy:
            settings |= {"classes": classes, "dim": dim}
        torch.manual_seed(7)
        return losses.create(self.name, **settings).double()

    @property
    def rowwise(self) -> bool:
        return bool(self.make().rowwise)


def _case(name: str, /, *, jumps: bool = False, mined: Any = None, random: bool = False, **settings: Any) -> Case:
    return Case(name, settings, jumps, mined, random=random)


ALL = [
    _case("contrastive"),
    _case("contrastive", distance="euclidean"),
    _case("contrastive", distance="euclidean", normalize=False, margin=1.5),
    _case("contrastive", miner="hard", mined=("hard", {}), jumps=True),
    _case("triplet", mined=("semihard", {}), jumps=True),
    _case("triplet", miner=None, margin=0.3),
    _case("triplet", distance="euclidean", miner=None),
    _case("triplet", distance="euclidean", normalize=False, mined=("semihard", {}), jumps=True),
    _case("triplet", miner="hard", mined=("hard", {}), jumps=True),
    _case("triplet", miner="vthm", mined=("vthm", {}), jumps=True),
    _case("triplet", miner="distance_weighted", random=True),
    _case("n_pair"),
    _case("lifted_structure"),
    _case("lifted_structure", normalize=False),
    _case("lifted_structure", form="generalized"),
    _case("binomial_deviance"),
    _case("binomial_deviance", miner="vthm", mined=("vthm", {}), jumps=True),
    _case("margin", miner=None),
    _case("margin", miner=None, classes=CLASSES, beta=0.9),
    _case("margin", random=True),
    _case("multi_similarity", jumps=True),
    _case("multi_similarity", epsilon=None),
    _case("multi_similarity", miner="semihard", mined=("semihard", {}), jumps=True),
    _case("raw", jumps=True),
    _case("ranked_list"),
    _case("ranked_list", gallery_gradient=True),
    _case("ranked_list", temperature=0.0, margin=0.2, alpha=1.4, balance=0.5),
    _case("nra"),
    _case("nra", range_slack=0.1),
    _case("nra", power=1.0),
    _case("histogram"),
    _case("histogram", bins=10),
    _case("angular"),
    _case("angular", degrees=36.0),
    _case("quadruplet"),
    _case("quadruplet", miner="hard", mined=("hard", {}), jumps=True),
    _case("struct_clust"),
    _case("spectral_clust"),
    _case("circle"),
    _case("supcon"),
    _case("nt_xent"),
    _case("nt_xent", miner="random", random=True),
    _case("smooth_ap"),
    _case("recall_at_k"),
    _case("softmax"),
    _case("softmax", normalized=True),
    _case("proxy_nca"),
    _case("proxy_nca", assignment="dynamic"),
    _case("arcface"),
    _case("cosface"),
    _case("sub_center_arcface"),
    _case("soft_triple"),
    _case("soft_triple", centers=1),
    _case("proxy_anchor"),
    _case("proxy_repulsion"),
    _case("proxy_repulsion", variant=2),
]
ROWWISE = [case for case in ALL if case.rowwise]
DENSE = [case for case in ALL if not case.rowwise]
PAIR = [case for case in ALL if not case.proxy]
FIXED = [case for case in ALL if not case.random]


def batch(
    seed: int,
    rows: int = 10,
    dim: int = DIM,
    classes: int = CLASSES,
    dtype: torch.dtype = torch.float64,
    grad: bool = True,
) -> tuple[Tensor, Tensor]:
    """A random batch; every class of the first labels has at least two members where there is room."""
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(rows, dim, generator=generator, dtype=torch.float64).to(dtype)
    labels = torch.arange(rows) % classes
    labels = labels[torch.randperm(rows, generator=generator)]
    return embeddings.requires_grad_(grad), labels


def gradients(value: Tensor, *tensors: Tensor) -> list[Tensor]:
    """Gradients, zeros where a tensor does not matter."""
    found = torch.autograd.grad(value, tensors, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(tensors, found, strict=True)]

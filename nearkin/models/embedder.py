"""A network with heads: what is trained, and what turns images into embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearkin import checks
from nearkin.models.backbone import Backbone, wide
from nearkin.models.pooling import POOLINGS

LETTERS = ("L", "M", "H")


class Head(nn.Module):
    """Pooling, then a linear layer to ``dim`` dimensions.

    The layer's weights are drawn from a normal distribution of variance 2 / dim (He 2015, by outputs) and its biases
    are 0, as in the code of proxy_anchor; a layer that reads a map place by place has torch's usual start.
    """

    def __init__(self, inputs: int, dim: int, pooling: str, *, places: bool = False) -> None:
        super().__init__()
        self.pooling = POOLINGS[pooling]()
        self.linear = nn.Linear(inputs, dim)
        if not places:
            nn.init.kaiming_normal_(self.linear.weight, mode="fan_out")
            nn.init.zeros_(self.linear.bias)

    def forward(self, features: Tensor) -> Tensor:
        embeddings: Tensor = self.linear(self.pooling(features))
        return embeddings


class Embedder(nn.Module):
    """A network with one head per level.

    ``forward(images)`` gives {level: raw embeddings (n, dim)}, to which each level's loss is applied;
    ``embed(images)`` gives unit vectors (n, total) to search with.

    - ``levels``: None for the network's usual one, "lmh" (or some of these letters) for its three under the names
      "L", "M" and "H", or names of levels;
    - ``pooling``: "gap", "gmp", "gap+gmp", "gem" or "none"; None for the network's own, "gap+gmp" for most;
    - ``frozen_batch_norm``: batch norms keep their statistics in training; their scales and shifts still learn.

    Parameters that no wanted level depends on are left out of training: they require no gradient.

    >>> from nearkin import models
    >>> model = models.create("small", dim=16, levels="lmh")
    >>> {level: tuple(part.shape) for level, part in model(torch.rand(2, 3, 32, 32)).items()}
    {'L': (2, 16), 'M': (2, 16), 'H': (2, 16)}
    >>> model.total, tuple(model.embed(torch.rand(2, 3, 32, 32)).shape)
    (48, (2, 48))
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        dim: int = 512,
        levels: str | Sequence[str] | None = None,
        pooling: str | None = None,
        frozen_batch_norm: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(backbone, Backbone):
            raise TypeError(
                f"backbone must be a models.Backbone, got {type(backbone).__name__}; derive a class from it, as "
                f"docs/models.md shows, or use models.create for a network that comes with nearkin."
            )
        checks.setting(backbone.name, "dim", dim, checks.COUNT)
        checks.setting(backbone.name, "frozen_batch_norm", frozen_batch_norm, (True, False))
        read = _levels(backbone, levels)
        if pooling not in (None, "none") and set(read.values()) <= set(backbone.vectors):
            raise ValueError(
                f"{backbone.name}: pooling must be None, because the network pools {', '.join(read)} itself, got "
                f"{pooling!r}; leave pooling out."
            )
        self.backbone = backbone
        self.dim = dim
        self.levels = tuple(read)
        self.total = dim * len(read)
        self.pooling = pooling
        self.frozen_batch_norm = frozen_batch_norm
        self._read = read
        self.heads = nn.ModuleDict({key: _head(backbone, level, dim, pooling) for key, level in read.items()})
        with torch.enable_grad():
            _leave_out(backbone, tuple(read.values()))
        self.train(self.training)

    @property
    def size(self) -> int:
        """The side of the images the network is meant for."""
        return self.backbone.size

    @property
    def mean(self) -> tuple[float, float, float]:
        """What to subtract from RGB in 0 .. 1."""
        return self.backbone.mean

    @property
    def std(self) -> tuple[float, float, float]:
        """What to divide the difference by."""
        return self.backbone.std

    @property
    def settings(self) -> dict[str, Any]:
        """What makes this model again, without its weights: ``models.create(**model.settings)``."""
        return {
            "name": self.backbone.name,
            "dim": self.dim,
            "levels": list(self.levels),
            **({} if self.pooling is None else {"pooling": self.pooling}),
            "frozen_batch_norm": self.frozen_batch_norm,
            **self.backbone.settings,
        }

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """Raw embeddings (n, dim) of each level."""
        features = self.backbone(images, tuple(self._read.values()))
        return {key: head(features[self._read[key]]) for key, head in self.heads.items()}

    def embed(self, images: Tensor) -> Tensor:
        """Unit vectors (n, total): those of the levels side by side, brought to length 1 again."""
        parts = [functional.normalize(wide(part), dim=1) for part in self.forward(images).values()]
        return parts[0] if len(parts) == 1 else functional.normalize(torch.cat(parts, 1), dim=1)

    def train(self, mode: bool = True) -> Embedder:
        """Training mode or not; frozen batch norms stay out of it."""
        super().train(mode)
        if self.frozen_batch_norm:
            for module in self.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self

    def freeze_batch_norm(self, frozen: bool = True) -> Embedder:
        """Freeze or release the statistics of every batch norm."""
        self.frozen_batch_norm = frozen
        return self.train(self.training)

    def parameter_groups(
        self,
        lr: float,
        head_multiplier: float = 1.0,
        weight_decay: float | None = None,
        decay_norms: bool = True,
    ) -> list[dict[str, Any]]:
        """Groups "backbone" and "heads" for an optimiser; the heads learn ``head_multiplier`` times as fast.

        Without ``decay_norms``, biases, norms and the power of GeM go into groups of their own, "backbone norms" and
        "heads norms", with no weight decay. Every parameter that requires a gradient is in exactly one group.

        >>> from nearkin import models
        >>> groups = models.create("small", dim=8).parameter_groups(1e-4, head_multiplier=10)
        >>> [(group["name"], group["lr"]) for group in groups]
        [('backbone', 0.0001), ('heads', 0.001)]
        """
        checks.setting("parameter_groups", "lr", lr, checks.NOT_NEGATIVE)
        checks.setting("parameter_groups", "head_multiplier", head_multiplier, checks.NOT_NEGATIVE)
        if weight_decay is not None:
            checks.setting("parameter_groups", "weight_decay", weight_decay, checks.NOT_NEGATIVE)
        decay = {} if weight_decay is None else {"weight_decay": weight_decay}
        groups: list[dict[str, Any]] = []
        for name, part, rate in (("backbone", self.backbone, lr), ("heads", self.heads, lr * head_multiplier)):
            learned = [parameter for parameter in part.parameters() if parameter.requires_grad]
            matrices = [parameter for parameter in learned if decay_norms or parameter.dim() > 1]
            groups.append({"name": name, "params": matrices, "lr": rate, **decay})
            if not decay_norms:
                flat = [parameter for parameter in learned if parameter.dim() <= 1]
                groups.append({"name": f"{name} norms", "params": flat, "lr": rate, "weight_decay": 0.0})
        return [group for group in groups if group["params"]]

    def summary(self) -> str:
        """One line: network, levels, dimensions, parameters.

        >>> from nearkin import models
        >>> print(models.create("small", dim=16, levels="lmh").summary())
        small, levels L (stage1), M (stage2), H (stage3), 3 x 16 = 48 dimensions, 0.3 M parameters
        """
        shown = [key if key == level else f"{key} ({level})" for key, level in self._read.items()]
        size = f"{self.total} dimensions" if len(shown) == 1 else f"{len(shown)} x {self.dim} = {self.total} dimensions"
        count = sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)
        return (
            f"{self.backbone.name}, level{'s' * (len(shown) > 1)} {', '.join(shown)}, {size}, "
            f"{count / 1e6:.1f} M parameters"
        )


def _levels(backbone: Backbone, levels: str | Sequence[str] | None) -> dict[str, str]:
    """Name of each head -> level of the network it reads."""
    if levels is None:
        return {backbone.level: backbone.level}
    if isinstance(levels, str):
        upper = levels.upper()
        letters = levels not in backbone.channels and upper and set(upper) <= set(LETTERS)
        keys = list(upper) if letters else [levels]
    else:
        keys = list(levels) if isinstance(levels, Sequence) else []
    if not keys or len(set(keys)) < len(keys):
        raise ValueError(
            f"{backbone.name}: levels must be 'lmh' or different names of levels, at least one, got {levels!r}; "
            f"choose of {', '.join(backbone.channels)}."
        )
    read = {}
    for key in keys:
        if key in LETTERS and key not in backbone.channels:
            if len(backbone.triple) != 3:
                raise ValueError(
                    f"{backbone.name}: levels 'lmh' need a network with at least three levels, got one with "
                    f"{', '.join(backbone.channels)}; name the levels, or choose another network."
                )
            read[key] = backbone.triple[LETTERS.index(key)]
        else:
            backbone.check_level(key)
            read[key] = key
    return read


def _head(backbone: Backbone, level: str, dim: int, pooling: str | None) -> Head:
    side = backbone.sides.get(level)
    chosen = backbone.pooling if pooling is None else pooling
    if chosen not in POOLINGS:
        raise ValueError(checks.unknown(f"{backbone.name}: pooling", chosen, POOLINGS))
    inputs = backbone.channels[level]
    if level in backbone.vectors:
        return Head(inputs, dim, "none")
    if chosen != "none":
        return Head(inputs, dim, chosen)
    if side is None:
        raise ValueError(
            f"{backbone.name}: pooling must not be 'none', because the map of {level} changes with the size of the "
            f"images; choose gap, gmp, gap+gmp or gem."
        )
    return Head(inputs * side * side, dim, chosen, places=True)


def _leave_out(backbone: Backbone, levels: tuple[str, ...]) -> None:
    """Let no parameter require a gradient that none of the levels depends on."""
    training = backbone.training
    first = next(backbone.parameters())
    side = backbone.size if backbone.fixed else max(backbone.least, 64)
    features = backbone.eval()(torch.zeros(1, 3, side, side, dtype=first.dtype, device=first.device), levels)
    backbone.train(training)
    waiting = [value.grad_fn for value in features.values()]
    seen, reached = set(waiting), set()
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        for following, _ in node.next_functions:
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    for parameter in backbone.parameters():
        if id(parameter) not in reached:
            parameter.requires_grad_(False)

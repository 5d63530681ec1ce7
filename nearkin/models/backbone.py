"""What every network is to the rest of nearkin: images in, named feature maps out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nearkin import checks

# Mean and standard deviation of RGB in 0 .. 1 over ImageNet, as torchvision's weights expect them.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Channels = Sequence[float]
Step = tuple[str, Callable[[Tensor], Tensor]]


class Backbone(nn.Module):
    """A network that gives its feature maps by name.

    A subclass sets the attributes below and defines ``steps``, which walks the network from the images to the last
    level. ``forward`` computes only what the wanted levels need.

    - ``name``: what ``models.create`` calls it;
    - ``channels``: level -> channels, in the order of computation;
    - ``level``: the level a single head reads; ``triple``: those of the heads L, M and H;
    - ``pooling``: how a head reads a map unless told otherwise;
    - ``sides``: level -> side of its map where that is fixed, which the pooling "none" needs;
    - ``vectors``: levels that are vectors (n, channels), pooled by the network itself;
    - ``least``: the smallest image side it can read; ``fixed``: only images of ``size`` are sure to fit;
    - ``unused``: beginnings of the names of tensors in a file of weights that this network has no use for;
    - ``size``, ``mean``, ``std``: side of the images, and what to subtract from RGB in 0 .. 1 and to divide it by;
    - ``settings``: what makes the network again, by name.
    """

    name: str
    channels: dict[str, int]
    level: str
    triple: tuple[str, ...]
    pooling: str = "gap+gmp"
    vectors: tuple[str, ...] = ()
    least: int = 32
    fixed: bool = False
    unused: tuple[str, ...] = ()

    def __init__(self, *, size: int, mean: Channels, std: Channels, **settings: Any) -> None:
        super().__init__()
        checks.setting(self.name, "size", size, checks.Limit(low=self.least, whole=True))
        self.size = size
        self.mean = _three(self.name, "mean", mean, checks.ANY)
        self.std = _three(self.name, "std", std, checks.POSITIVE)
        self.sides: dict[str, int] = {}
        self.settings: dict[str, Any] = {**settings, "size": size, "mean": list(self.mean), "std": list(self.std)}

    def steps(self) -> Iterator[Step]:
        """Parts of the network in order, each with the name of the level it completes ("" for none)."""
        raise NotImplementedError

    def forward(self, images: Tensor, levels: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Feature maps of ``levels`` (default: the single one) of images (n, 3, height, width), by level."""
        self.check_images(images)
        wanted = (self.level,) if levels is None else tuple(levels)
        for level in wanted:
            self.check_level(level)
        found: dict[str, Tensor] = {}
        value = images
        for level, step in self.steps():
            value = step(value)
            if level in wanted:
                found[level] = value
                if len(found) == len(set(wanted)):
                    break
        return {level: found[level] for level in wanted}

    def check_level(self, level: str) -> None:
        """Raise unless the network has a level of that name."""
        if level not in self.channels:
            raise ValueError(checks.unknown(f"{self.name}: level", level, self.channels))

    def check_images(self, images: Tensor) -> None:
        """Raise unless ``images`` is a floating (n, 3, height, width) tensor, large enough for the network."""
        check_floating(images)
        if images.dim() != 4 or images.shape[1] != 3 or min(images.shape[2:]) < self.least:
            raise ValueError(
                f"images must have shape (n, 3, height, width) with sides of at least {self.least} for {self.name}, "
                f"got {tuple(images.shape)}; resize them, and repeat a grey channel three times."
            )

    def weights_go_to(self) -> nn.Module:
        """The module whose names those of a weights file are."""
        return self


def check_floating(images: Tensor) -> None:
    if not images.is_floating_point():
        raise TypeError(
            f"images must be a floating-point tensor, got {images.dtype}; divide by 255, subtract the network's mean "
            f"and divide by its std."
        )


def wide(value: Tensor) -> Tensor:
    """The tensor in float32, or in float64 where it is so already."""
    return value if value.dtype == torch.float64 else value.float()


def draw(network: nn.Module) -> None:
    """Draw convolutions from the normal distribution that keeps the variance of gradients through a ReLU (He 2015)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def _three(owner: str, name: str, value: Channels, limit: checks.Limit) -> tuple[float, float, float]:
    parts: list[Any] = list(value) if isinstance(value, (list, tuple)) else []
    if len(parts) != 3 or not all(limit.allows(part) for part in parts):
        raise ValueError(
            f"{owner}: {name} must be three numbers, each {limit}, one for red, green and blue, got {value!r}; "
            f"change {name}."
        )
    red, green, blue = (float(part) for part in parts)
    return red, green, blue

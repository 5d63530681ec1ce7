"""A small convolutional network: quick enough to learn an embedding on two CPU cores in a minute."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nearkin import checks
from nearkin.models.backbone import Backbone, Channels, Step, check_floating, wide

# Maps are halved until a side is at most this; the head then reads them place by place.
_LAST_SIDE = 7


def small(
    *,
    size: int = 32,
    grey: bool = True,
    width: int = 32,
    mean: Channels = (0.0, 0.0, 0.0),
    std: Channels = (1.0, 1.0, 1.0),
) -> Small:
    """A network for small images of fixed ``size``; ``grey`` averages the colours first.

    >>> small(size=64, grey=False).channels
    {'stage1': 64, 'stage2': 64, 'stage3': 128}
    """
    return Small(size=size, grey=grey, width=width, mean=mean, std=std)


class Small(Backbone):
    """Maps of small images (n, 3, size, size), values in 0 .. 1; one channel will do where it looks at grey only.

    Each image is first brought to zero mean and unit variance, so brightness and contrast need not be learned. The first
    convolution has no bias and is followed by an absolute value: a shape gives the same features light on dark as dark
    on light. Averages, not maxima, make the maps smaller, so that a shift of a pixel changes little; that, more than
    width, is what carries over to classes never seen. Its head reads the last map place by place (pooling "none"),
    because where a stroke lies tells one character from another. Larger images pass through more averages and, from 225
    pixels on, more stages, so that the last map is always between 1 and 7 pixels wide.
    """

    name = "small"
    pooling = "none"
    least = 8
    fixed = True

    def __init__(self, *, size: int, grey: bool, width: int, mean: Channels, std: Channels) -> None:
        checks.setting("small", "grey", grey, (True, False))
        checks.setting("small", "width", width, checks.COUNT)
        super().__init__(size=size, mean=mean, std=std, grey=grey, width=width)
        self.grey = grey
        self.edges = nn.Conv2d(1 if grey else 3, width, 5, stride=2, padding=2, bias=False)
        # Averages count the border's padding as zeros, as they always did.
        self.smooth = nn.Sequential(nn.BatchNorm2d(width), nn.AvgPool2d(3, stride=2, padding=1))
        side = ((size + 1) // 2 + 1) // 2
        # The last stage always halves; more halvings go behind the first stages, where they save most.
        more = 0
        while (side >> (more + 1)) > _LAST_SIDE:
            more += 1
        self.channels = {}
        inputs, stages = width, max(3, more + 1)
        for number in range(1, stages + 1):
            outputs = 2 * width if number < 3 else 4 * width
            stage = nn.Sequential(
                # The batch norm that follows has a bias, so the convolution needs none.
                nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
            )  # fmt: skip
            if number <= more or number == stages:
                stage.append(nn.AvgPool2d(2))
                side //= 2
            self.add_module(f"stage{number}", stage)
            self.channels[f"stage{number}"], self.sides[f"stage{number}"] = outputs, side
            inputs = outputs
        self.level = f"stage{stages}"
        self.triple = (f"stage{stages - 2}", f"stage{stages - 1}", self.level)

    def steps(self) -> Iterator[Step]:
        yield "", self._stem
        for level in self.channels:
            yield level, getattr(self, level)

    def _stem(self, images: Tensor) -> Tensor:
        value = wide(images)
        if self.grey:
            value = value.mean(1, keepdim=True)
        variance, mean = torch.var_mean(value, (1, 2, 3), keepdim=True)
        standard = (value - mean) / (variance + 1e-4).sqrt()
        features: Tensor = self.smooth(self.edges(standard.to(self.edges.weight.dtype)).abs())
        return features

    def check_images(self, images: Tensor) -> None:
        check_floating(images)
        fits = images.dim() == 4 and images.shape[2:] == (self.size, self.size)
        if not fits or images.shape[1] not in ((1, 3) if self.grey else (3,)):
            raise ValueError(
                f"images must have shape (n, 3, {self.size}, {self.size}) for small, got {tuple(images.shape)}; "
                f"resize them, or create small with their size."
            )

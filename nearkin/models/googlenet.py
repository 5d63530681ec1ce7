"""GoogLeNet (Szegedy et al. 2014) as torchvision has it: with batch norm, and 3x3 where the paper has 5x5."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearkin.models.backbone import Backbone, Channels, Step, draw
from nearkin.models.fold import bent

# Of each module: 1x1; 1x1 before 3x3, 3x3; 1x1 before the second 3x3, that one; 1x1 after the pooling.
_MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(*, size: int = 224, mean: Channels = (0.5, 0.5, 0.5), std: Channels = (0.5, 0.5, 0.5)) -> GoogLeNet:
    """GoogLeNet with batch norm; a level is the output of an inception module.

    >>> googlenet().triple
    ('inception_3b', 'inception_4e', 'inception_5b')
    """
    return GoogLeNet(size=size, mean=mean, std=std)


class GoogLeNet(Backbone):
    """Nine inception modules behind three convolutions.

    It has no module 3c, so the lowest of the three levels is 3b, before the pooling. torchvision's weights were trained
    on images in -1 .. 1, hence mean and std of 0.5 (torchvision converts its own normalisation to that inside). The
    two auxiliary classifiers are not there; a weights file may hold them.
    """

    name = "googlenet"
    level = "inception_5b"
    triple = ("inception_3b", "inception_4e", "inception_5b")
    unused = ("fc.", "aux1.", "aux2.")

    def __init__(self, *, size: int, mean: Channels, std: Channels) -> None:
        super().__init__(size=size, mean=mean, std=std)
        self.conv1 = _Convolution(3, 64, 7, stride=2)
        self.conv2 = _Convolution(64, 64, 1)
        self.conv3 = _Convolution(64, 192, 3)
        self.channels = {}
        inputs = 192
        for number, widths in _MODULES.items():
            self.add_module(f"inception{number}", _Inception(inputs, *widths))
            inputs = self.channels[f"inception_{number}"] = widths[0] + widths[2] + widths[4] + widths[5]
        draw(self)

    def steps(self) -> Iterator[Step]:
        yield "", self._stem
        for number in _MODULES:
            if number == "4a":
                yield "", _halve
            if number == "5a":
                yield "", _halve_two
            yield f"inception_{number}", getattr(self, f"inception{number}")

    def _stem(self, images: Tensor) -> Tensor:
        return _halve(self.conv3(self.conv2(_halve(self.conv1(images)))))


class _Convolution(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)

    def forward(self, value: Tensor) -> Tensor:
        return bent(self.conv, self.bn, value)


class _Inception(nn.Module):
    def __init__(self, inputs: int, one: int, before: int, three: int, before2: int, second: int, pool: int) -> None:
        super().__init__()
        self.branch1 = _Convolution(inputs, one, 1)
        self.branch2 = nn.Sequential(_Convolution(inputs, before, 1), _Convolution(before, three, 3))
        self.branch3 = nn.Sequential(_Convolution(inputs, before2, 1), _Convolution(before2, second, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), _Convolution(inputs, pool, 1))

    def forward(self, value: Tensor) -> Tensor:
        return torch.cat([self.branch1(value), self.branch2(value), self.branch3(value), self.branch4(value)], 1)


def _halve(value: Tensor) -> Tensor:
    return functional.max_pool2d(value, 3, stride=2, ceil_mode=True)


def _halve_two(value: Tensor) -> Tensor:
    return functional.max_pool2d(value, 2, stride=2, ceil_mode=True)

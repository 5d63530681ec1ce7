"""A small convolutional network: quick enough to learn an embedding on two CPU cores in a minute."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SmallNet(nn.Module):
    """Map small images (n, channels, size, size), values in 0 .. 1, to raw embeddings (n, dim).

    Each image is first brought to zero mean and unit variance, so brightness and contrast need not be
    learned. The first convolution has no bias and is followed by an absolute value: a shape gives the same
    features light on dark as dark on light. Averages, not maxima, make the maps smaller, so that a shift of a
    pixel changes little; that, more than width, is what carries over to classes never seen. A linear layer
    reads the last map place by place, because where a stroke lies tells one character from another.
    Losses and evaluation normalise embeddings; this network does not.

    >>> SmallNet(dim=16)(torch.rand(2, 1, 32, 32)).shape
    torch.Size([2, 16])
    """

    def __init__(self, dim: int = 64, size: int = 32, channels: int = 1, width: int = 32) -> None:
        super().__init__()
        least_of = {"dim": (dim, 1), "size": (size, 8), "channels": (channels, 1), "width": (width, 1)}
        for name, (value, least) in least_of.items():
            if value < least:
                raise ValueError(f"{name} must be at least {least}, but is {value}: pass {least} or more.")
        self.dim, self.size, self.channels = dim, size, channels
        self.edges = nn.Conv2d(channels, width, 5, stride=2, padding=2, bias=False)
        self.features = nn.Sequential(
            nn.BatchNorm2d(width),
            nn.AvgPool2d(3, stride=2, padding=1),
            *_convolution(width, 2 * width),
            *_convolution(2 * width, 2 * width),
            *_convolution(2 * width, 4 * width),
            nn.AvgPool2d(2),
        )
        side = ((size + 1) // 2 + 1) // 2 // 2
        self.embedding = nn.Linear(4 * width * side * side, dim)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[1:] != (self.channels, self.size, self.size):
            raise ValueError(
                f"images must have shape (n, {self.channels}, {self.size}, {self.size}), but have "
                f"{tuple(images.shape)}: resize them, or build SmallNet with their size and channels."
            )
        variance, mean = torch.var_mean(images, (1, 2, 3), keepdim=True)
        standard = (images - mean) / (variance + 1e-4).sqrt()
        embeddings: Tensor = self.embedding(self.features(self.edges(standard).abs()).flatten(1))
        return embeddings


def _convolution(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    # The batch norm that follows has a bias, so the convolution needs none.
    return nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()

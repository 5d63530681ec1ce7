"""Two convolutions and one fully connected layer: the network of NRA's figure of handwritten digits in the plane."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from nearkin import checks
from nearkin.models.backbone import Backbone, Channels, Step, check_floating, draw


def digits(
    *, size: int = 28, width: int = 16, mean: Channels = (0.0, 0.0, 0.0), std: Channels = (1.0, 1.0, 1.0)
) -> Digits:
    """Two convolutions for small grey images of fixed ``size``; the second is twice as wide as the first.

    >>> digits().channels, digits().sides
    ({'stage1': 16, 'stage2': 32}, {'stage1': 14, 'stage2': 7})
    """
    return Digits(size=size, width=width, mean=mean, std=std)


class Digits(Backbone):
    """Maps of small images (n, 3, size, size) whose colours are averaged first, or of grey ones (n, 1, size, size).

    Each of the two stages is a convolution of 5x5 that moves by two pixels, and a ReLU; nothing else makes the maps
    smaller. The head reads the last map place by place (pooling "none"), so it is the one fully connected layer, and nothing
    bounds the embedding: ``models.create("digits", dim=2)`` maps an image to a point anywhere in the plane.
    """

    name = "digits"
    pooling = "none"
    least = 8
    fixed = True

    def __init__(self, *, size: int, width: int, mean: Channels, std: Channels) -> None:
        checks.setting("digits", "width", width, checks.COUNT)
        super().__init__(size=size, mean=mean, std=std, width=width)
        self.stage1 = nn.Sequential(nn.Conv2d(1, width, 5, stride=2, padding=2), nn.ReLU())
        self.stage2 = nn.Sequential(nn.Conv2d(width, 2 * width, 5, stride=2, padding=2), nn.ReLU())
        draw(self)
        self.channels = {"stage1": width, "stage2": 2 * width}
        self.sides["stage1"] = (size + 1) // 2
        self.sides["stage2"] = (self.sides["stage1"] + 1) // 2
        self.level = "stage2"
        self.triple = ("stage1", "stage2")

    def steps(self) -> Iterator[Step]:
        yield "", self._grey
        yield "stage1", self.stage1
        yield "stage2", self.stage2

    def _grey(self, images: Tensor) -> Tensor:
        return images.mean(1, keepdim=True)

    def check_images(self, images: Tensor) -> None:
        check_floating(images)
        if images.dim() != 4 or images.shape[2:] != (self.size, self.size) or images.shape[1] not in (1, 3):
            raise ValueError(
                f"images must have shape (n, 3, {self.size}, {self.size}) for digits, got {tuple(images.shape)}; "
                f"resize them, or create digits with their size."
            )

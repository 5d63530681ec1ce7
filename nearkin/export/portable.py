"""A network with the cutting of images and the normalisation of vectors inside, of plain tensor operations only."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from nearkin.trained import Trained


class Portable(nn.Module):
    """Pixels (n, height, width, 3) of uint8, any height and width, to unit vectors (n, dim).

    Images of a batch have one size. Those whose shorter side is longer than that of the packs are shrunk to it and
    rounded first, as `nearkin.data.decode` does it. Then the centre is cut and resized by two matrices of weights, the
    antialiased triangle of `nearkin.data.resample`, so that the sizes may stay open when the network is exported.

    >>> from nearkin import models
    >>> from nearkin.trained import View
    >>> trained = Trained(models.create("small", dim=8), View("crop", 32, 36), {}, torch.device("cpu"))
    >>> Portable(trained)(torch.zeros(2, 50, 40, 3, dtype=torch.uint8)).shape
    torch.Size([2, 8])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self.model = trained.model.eval()
        view = trained.view
        self.geometry, self.size, self.resize = view.geometry, view.size, max(view.resize, view.size)
        self.side = view.side
        self.around = view.geometry != "resized_crop"
        self.register_buffer("mean", torch.tensor(trained.model.mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(trained.model.std).view(1, 3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        pixels = self._shrunk(images.permute(0, 3, 1, 2).to(self.mean.dtype))
        rows = torch.arange(pixels.shape[2], device=images.device).to(self.mean.dtype)
        columns = torch.arange(pixels.shape[3], device=images.device).to(self.mean.dtype)
        height, width = rows[-1] + 1, columns[-1] + 1
        shorter, longer = torch.minimum(height, width), torch.maximum(height, width)
        down, inside_y = self._weights(rows, height, shorter, longer)
        across, inside_x = self._weights(columns, width, shorter, longer)
        cut = down @ pixels @ across.T
        normal = (cut / 255 - self.mean) / self.std
        # What lies beside the picture has the mean colour.
        inside = inside_y[:, None] * inside_x
        return self.model.embed(normal * inside)

    def _shrunk(self, pixels: Tensor) -> Tensor:
        """Pixels (n, 3, height, width) with the shorter side at most ``side``, in whole numbers as a pack has them."""
        if not self.side:
            return pixels
        height, width = pixels.shape[2:]
        shorter = torch.sym_min(height, width)
        # An image that is small enough would grow by this; it keeps its size.
        size = [torch.sym_min(length, self.side * length // shorter) for length in (height, width)]
        return torch.round(interpolate(pixels, size, mode="bilinear", antialias=True))

    def _weights(self, places: Tensor, length: Tensor, shorter: Tensor, longer: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (size, length) of source pixels for each pixel that is shown along an axis, and whether it shows any."""
        size, resize = self.size, self.resize
        if self.geometry == "squash":
            resized, room = torch.full_like(length, resize), torch.full_like(length, resize)
        elif self.geometry == "longer_side":
            resized = torch.clamp(torch.floor(resize * length / longer), min=1)
            room = torch.full_like(length, resize)
        else:
            resized = torch.floor(resize * length / shorter)
            room = resized
        start = torch.round((room - size) / 2) - torch.floor((room - resized) / 2)
        scale = length / resized
        centres = (start + torch.arange(size, device=places.device).to(places.dtype) + 0.5) * scale
        reach = torch.clamp(scale, min=1.0)
        weights = torch.clamp(1 - torch.abs(places + 0.5 - centres[:, None]) / reach, min=0.0)
        if not self.around:
            first, last = torch.floor(start * scale), torch.ceil((start + size) * scale)
            weights = weights * ((places >= first) & (places < last)).to(places.dtype)
        total = weights.sum(1, keepdim=True)
        inside = ((centres >= 0) & (centres <= length)).to(places.dtype)
        return weights / torch.clamp(total, min=1e-6), inside

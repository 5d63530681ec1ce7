"""From a feature map (n, channels, height, width) to one vector of each image."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nearkin.models.backbone import wide


class Average(nn.Module):
    """The mean over all places ("gap")."""

    def forward(self, features: Tensor) -> Tensor:
        return features.mean((2, 3))


class Maximum(nn.Module):
    """The largest value over all places ("gmp"); equal largest values share the gradient."""

    def forward(self, features: Tensor) -> Tensor:
        return features.amax((2, 3))


class AverageMaximum(nn.Module):
    """The sum of both ("gap+gmp"), as in the code of proxy_anchor."""

    def forward(self, features: Tensor) -> Tensor:
        return features.mean((2, 3)) + features.amax((2, 3))


class GeM(nn.Module):
    """The generalised mean, (mean of x^p)^(1/p), with a learned p that begins at 3 (Radenovic et al. 2018).

    p = 1 is the mean, large p the maximum. Values below ``least`` are taken as ``least``.
    """

    def __init__(self, power: float = 3.0, least: float = 1e-6) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.tensor(power))
        self.least = least

    def forward(self, features: Tensor) -> Tensor:
        # x^p leaves the range and the precision of the half types.
        power = wide(self.power)
        mean = wide(features).clamp(min=self.least).pow(power).mean((2, 3)).pow(1 / power)
        return mean.to(features.dtype)


class Places(nn.Module):
    """Every place on its own ("none"), for networks whose maps have a fixed size or are vectors."""

    def forward(self, features: Tensor) -> Tensor:
        return features.flatten(1)


POOLINGS: dict[str, type[nn.Module]] = {
    "gap": Average,
    "gmp": Maximum,
    "gap+gmp": AverageMaximum,
    "gem": GeM,
    "none": Places,
}

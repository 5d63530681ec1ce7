"""Equal weights give equal maps in torchvision's and timm's networks."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import nn

from nearkin import models
from nearkin.models.weights import Weights, fit

SIZES = [(227, 227), (97, 130)]


def shake(network: nn.Module) -> None:
    """Give batch norms scales, shifts and statistics that are not 1 and 0, so that nothing hides in them."""
    generator = torch.Generator().manual_seed(0)
    for name, value in network.state_dict().items():
        if name.endswith("running_var") or (value.dim() == 1 and name.endswith("weight")):
            value.copy_(0.5 + torch.rand(value.shape, generator=generator))
        elif value.dim() == 1:
            value.copy_(0.1 * torch.randn(value.shape, generator=generator))


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "googlenet"])
def test_torchvision(torchvision: ModuleType, name: str) -> None:
    settings = {"init_weights": True, "aux_logits": True} if name == "googlenet" else {}
    torch.manual_seed(0)
    other = getattr(torchvision.models, name)(weights=None, **settings).eval()
    shake(other)
    network = models.create(name).backbone.eval()
    fit(network, Weights(dict(other.state_dict())))
    network.double(), other.double()
    modules = {level: getattr(other, level.replace("_", "")) for level in network.channels}
    expected: dict[str, torch.Tensor] = {}
    for level, module in modules.items():
        module.register_forward_hook(lambda _, __, found, level=level: expected.update({level: found.clone()}))
    for height, width in SIZES:
        images = torch.rand(1, 3, height, width, dtype=torch.float64)
        with torch.no_grad():
            other(images)
            found = network(images, list(network.channels))
        for level in network.channels:
            torch.testing.assert_close(
                found[level], expected[level], rtol=1e-4, atol=1e-4 * float(expected[level].max())
            )


@pytest.mark.parametrize("number", [0, 1, 2])
def test_efficientnet_lite_of_timm(timm: ModuleType, number: int) -> None:
    """timm has other names for the same tensors in the same order."""
    torch.manual_seed(0)
    other = timm.create_model(f"tf_efficientnet_lite{number}", num_classes=0).eval()
    shake(other)
    network = models.create(f"efficientnet_lite{number}").backbone.eval()
    fit(network, Weights(dict(zip(network.state_dict(), other.state_dict().values(), strict=True))))
    network.double(), other.double()
    for height, width in [(network.size, network.size), (97, 130)]:
        images = torch.rand(1, 3, height, width, dtype=torch.float64)
        with torch.no_grad():
            torch.testing.assert_close(network(images)["head"], other.forward_features(images), rtol=1e-9, atol=1e-9)

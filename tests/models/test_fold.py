"""A folded batch norm is the batch norm: values and gradients, of every parameter."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from nearkin import models
from nearkin.models.fold import normed


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_values_and_gradients_equal_the_plain_pair(bias: bool, groups: int) -> None:
    torch.manual_seed(0)
    convolution = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=bias, groups=groups).double()
    norm = nn.BatchNorm2d(8).double().eval()
    for value in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data):
        assert value is not None
        value.copy_(torch.rand(8) + 0.5)
    images = torch.randn(3, 4, 9, 9, dtype=torch.float64, requires_grad=True)
    inputs = [images, *convolution.parameters(), *norm.parameters()]
    plain, folded = norm(convolution(images)), normed(convolution, norm, images)
    torch.testing.assert_close(folded, plain, rtol=1e-12, atol=1e-13)
    wanted = torch.randn_like(plain)
    for one, other in zip(
        torch.autograd.grad(folded, inputs, wanted), torch.autograd.grad(plain, inputs, wanted), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


def test_in_training_mode_the_statistics_move() -> None:
    convolution, norm = nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4)
    normed(convolution, norm, torch.rand(2, 3, 4, 4) + 5)
    assert norm.running_mean is not None and norm.running_mean.abs().max() > 0


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "googlenet", "bn_inception", "efficientnet_lite0"])
def test_every_network_uses_it_without_changing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.create(name, dim=4, seed=0, size=64).double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    images = torch.rand(2, 3, 64, 64, dtype=torch.float64)
    folded = model.embed(images)
    calls = []

    def plain(convolution: nn.Conv2d, norm: nn.BatchNorm2d, value: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        found: torch.Tensor = norm(convolution(value))
        return found

    file = {"resnet18": "resnet", "resnet50": "resnet", "efficientnet_lite0": "efficientnet_lite"}.get(name, name)
    monkeypatch.setattr(sys.modules[f"nearkin.models.{file}"], "normed", plain)  # a function may have the module's name
    torch.testing.assert_close(model.embed(images), folded, rtol=1e-8, atol=1e-9)
    assert len(calls) > 10

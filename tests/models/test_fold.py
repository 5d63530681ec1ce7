"""A folded batch norm is the batch norm: values and gradients, of every parameter."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from nearkin import models
from nearkin.models.fold import bent, normed, unshifted


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


@pytest.mark.parametrize("shortcut", ["none", "map", "convolution"])
@pytest.mark.parametrize("one_pass", [False, True])
def test_shift_shortcut_and_rectifier_are_added(shortcut: str, one_pass: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the shift comes apart but no kernel takes it, as for maps of another layout."""
    monkeypatch.setattr("nearkin.models.fold._one_pass", lambda value: one_pass)
    torch.manual_seed(0)
    pairs = [(nn.Conv2d(4, 8, 1, bias=False).double(), nn.BatchNorm2d(8).double().eval()) for _ in range(2)]
    for _, norm in pairs:
        nn.init.uniform_(norm.weight)
        nn.init.uniform_(norm.bias)
    images = torch.randn(2, 4, 5, 5, dtype=torch.float64)
    others = torch.randn(2, 8, 5, 5, dtype=torch.float64)
    plain = [norm(convolution(images)) for convolution, norm in pairs]
    short = {"none": None, "map": (others, None), "convolution": unshifted(*pairs[1], images)}[shortcut]
    expected = plain[0] + {"none": 0, "map": others, "convolution": plain[1]}[shortcut]
    torch.testing.assert_close(bent(*pairs[0], images, short), expected.relu())  # type: ignore[arg-type]


def test_what_is_not_taken_by_a_kernel_keeps_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearkin.models.fold._one_pass", lambda value: True)
    convolution, norm = nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4).eval()
    with torch.autocast("cpu", torch.bfloat16):
        assert bent(convolution, norm, torch.rand(2, 3, 5, 6)).dtype == torch.bfloat16


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

    for file in ("fold", "efficientnet_lite"):
        monkeypatch.setattr(sys.modules[f"nearkin.models.{file}"], "normed", plain)
    torch.testing.assert_close(model.embed(images), folded, rtol=1e-8, atol=1e-9)
    assert len(calls) > 10

"""BN-Inception once more, from its state dict alone, in plain functional float64 steps."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from nearkin import models


def reference(state: dict[str, Tensor], images: Tensor) -> dict[str, Tensor]:
    """Outputs of all modules; branches, strides and poolings written down from the published prototxt."""
    state = {name: value.double() for name, value in state.items()}

    def block(name: str, value: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        value = functional.conv2d(value, weight, state[f"{name}.bias"], stride, weight.shape[-1] // 2)
        mean, variance, scale, shift = (
            state[f"{name}_bn.{part}"][:, None, None] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return ((value - mean) / (variance + 1e-5).sqrt() * scale + shift).clamp(min=0)

    def module(name: str, value: Tensor) -> Tensor:
        halves = name in ("3c", "4e")
        stride, prefix = 2 if halves else 1, f"inception_{name}"
        parts = [] if halves else [block(f"{prefix}_1x1", value)]
        parts.append(block(f"{prefix}_3x3", block(f"{prefix}_3x3_reduce", value), stride))
        double = block(f"{prefix}_double_3x3_1", block(f"{prefix}_double_3x3_reduce", value))
        parts.append(block(f"{prefix}_double_3x3_2", double, stride))
        if halves:
            parts.append(functional.max_pool2d(value, 3, 2, ceil_mode=True))
        elif name == "5b":
            parts.append(block(f"{prefix}_pool_proj", functional.max_pool2d(value, 3, 1, 1)))
        else:
            weight = torch.full((value.shape[1], 1, 3, 3), 1 / 9, dtype=torch.float64)
            parts.append(
                block(f"{prefix}_pool_proj", functional.conv2d(value, weight, padding=1, groups=value.shape[1]))
            )
        return torch.cat(parts, 1)

    blue_first = images.double()[:, [2, 1, 0]]
    value = functional.max_pool2d(block("conv1_7x7_s2", blue_first, 2), 3, 2, ceil_mode=True)
    value = functional.max_pool2d(block("conv2_3x3", block("conv2_3x3_reduce", value)), 3, 2, ceil_mode=True)
    found = {}
    for name in ["3a", "3b", "3c", "4a", "4b", "4c", "4d", "4e", "5a", "5b"]:
        value = found[f"inception_{name}"] = module(name, value)
    return found


def test_every_level_equals_the_plain_computation() -> None:
    network = models.create("bn_inception", seed=0).backbone.eval().double()
    generator = torch.Generator().manual_seed(1)
    for name, value in network.state_dict().items():
        if name.endswith(("running_var", "_bn.weight")):
            value.copy_(0.5 + torch.rand(value.shape, generator=generator))
        elif name.endswith(("bias", "running_mean")):
            value.copy_(0.1 * torch.randn(value.shape, generator=generator))
    images = torch.randn(2, 3, 96, 128, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        found, expected = network(images, list(network.channels)), reference(network.state_dict(), images)
    assert list(found) == list(expected)
    for level in expected:
        torch.testing.assert_close(found[level], expected[level], rtol=1e-9, atol=1e-9)

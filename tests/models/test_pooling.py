"""Poolings against plain loops, gradients, and half precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nearkin.models import POOLINGS


def plain(name: str, features: Tensor, power: float = 3.0) -> Tensor:
    rows = []
    for image in features.double().tolist():
        row = []
        for channel in image:
            values = [value for line in channel for value in line]
            average, largest = sum(values) / len(values), max(values)
            general = (sum(max(value, 1e-6) ** power for value in values) / len(values)) ** (1 / power)
            row.append({"gap": average, "gmp": largest, "gap+gmp": average + largest, "gem": general}[name])
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("name", ["gap", "gmp", "gap+gmp", "gem"])
def test_values(name: str) -> None:
    features = torch.randn(3, 5, 4, 7, dtype=torch.float64).relu()
    torch.testing.assert_close(POOLINGS[name]().double()(features), plain(name, features))


def test_gem_between_mean_and_maximum() -> None:
    pool = POOLINGS["gem"]().double()
    assert pool.power.item() == 3.0
    features = torch.rand(2, 3, 5, 5, dtype=torch.float64)
    for power, name in ((1.0, "gap"), (500.0, "gmp")):
        torch.nn.init.constant_(pool.power, power)
        torch.testing.assert_close(pool(features), plain(name, features), rtol=1e-2, atol=0)
    torch.nn.init.constant_(pool.power, 4.5)
    torch.testing.assert_close(pool(features), plain("gem", features, 4.5))


@pytest.mark.parametrize("name", ["gap", "gmp", "gap+gmp", "gem"])
def test_gradients(name: str) -> None:
    pool = POOLINGS[name]().double()
    features = (torch.rand(2, 3, 3, 3, dtype=torch.float64) + 0.1).requires_grad_()
    inputs = (features, *pool.parameters())
    assert torch.autograd.gradcheck(lambda value, *_: pool(value), inputs)
    if name == "gmp":
        (own,) = torch.autograd.grad(pool(features).square().sum(), features)
        other = functional.adaptive_max_pool2d(features, 1).square().sum()
        torch.testing.assert_close(own, torch.autograd.grad(other, features)[0])


def test_gem_learns_its_power_and_is_finite_where_all_is_zero() -> None:
    pool = POOLINGS["gem"]()
    features = torch.zeros(2, 3, 4, 4, requires_grad=True)
    pool(features).sum().backward()
    assert features.grad is not None and features.grad.isfinite().all()
    assert pool.power.grad is not None and pool.power.grad.isfinite()


def test_gem_is_computed_beyond_half_precision() -> None:
    """100^3 is no half number; the mean of the cubes is."""
    features = torch.full((1, 2, 4, 4), 100.0, dtype=torch.float16)
    pooled = POOLINGS["gem"]()(features)
    assert pooled.dtype == torch.float16
    torch.testing.assert_close(pooled, torch.full((1, 2), 100.0, dtype=torch.float16))


def test_none_keeps_every_place() -> None:
    features = torch.rand(2, 3, 4, 5)
    assert torch.equal(POOLINGS["none"]()(features), features.reshape(2, 60))

"""Both sides of a loss in one go, as a compiler has them, and one after the other: the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nearkin import reductions
from nearkin.losses.margin import margin
from nearkin.pairs import Few
from nearkin.sides import Side, logsumexps, soft_sums, together
from nearkin.tracing import tracing

PULL, PUSH = Side(-2.0, 0.5), Side(50.0, 0.5)
Sums = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]]
FUNCTIONS: dict[str, Sums] = {
    "logsumexps": lambda *given: logsumexps(*given, pull=PULL, push=PUSH),
    "logsumexps with one": lambda *given: logsumexps(*given, pull=PULL, push=PUSH, one=True),
    "soft_sums": lambda *given: soft_sums(*given, pull=PULL, push=PUSH),
    "margin": lambda *given: margin(*given, torch.full((len(given[0]),), 0.3, dtype=given[0].dtype)),
}


def drawn(seed: int, rows: int = 5, columns: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    """Cosines and two masks of counts that share no pair; the first row has no positive, the second no negative."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(rows, columns, generator=generator, dtype=torch.float64) * 2 - 1
    side = torch.randint(0, 3, (rows, columns), generator=generator)
    counts = torch.randint(1, 4, (rows, columns), generator=generator).double()
    side[0][side[0] == 0], side[1][side[1] == 1] = 2, 2
    return values, counts * (side == 0), counts * (side == 1)


def slopes(function: Sums, values: Tensor, *masks: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    leaf = values.clone().requires_grad_(True)
    found = function(leaf, *masks)
    weights = torch.linspace(0.5, 2, len(values), dtype=values.dtype)
    total = sum(
        (x * weights * (k + 1)).masked_fill(~x.isfinite(), 0).sum() for k, x in enumerate(found) if x.requires_grad
    )
    return tuple(x.detach() for x in found), torch.autograd.grad(total, leaf)[0]


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(deadline=None)
@given(seed=st.integers(0, 2**31))
def test_one_go_equals_two(name: str, seed: int) -> None:
    values, positive, negative = drawn(seed)
    apart, apart_slopes = slopes(FUNCTIONS[name], values, positive, negative)
    with tracing():
        assert together(positive, negative)
        joint, joint_slopes = slopes(FUNCTIONS[name], values, positive, negative)
    torch.testing.assert_close(joint, apart)
    torch.testing.assert_close(joint_slopes, apart_slopes)


def test_sides_are_apart_without_a_compiler_and_of_few_columns() -> None:
    _, positive, negative = drawn(0)
    assert together(positive, negative) is None
    few = Few(torch.zeros(5, 1, dtype=torch.long), torch.ones(5, 1))
    with tracing():
        assert together(few, negative) is None
        assert together(positive, few) is None  # type: ignore[arg-type]


def test_what_a_mask_leaves_out_has_no_slope_and_a_nan_does_not_hide() -> None:
    values, positive, negative = drawn(3)
    with tracing():
        _, slope = slopes(FUNCTIONS["logsumexps with one"], values, positive, negative)
        assert bool((slope[(positive + negative) == 0] == 0).all())
        values[2][negative[2] > 0] = math.nan
        (_, push), _ = slopes(FUNCTIONS["logsumexps with one"], values, positive, negative)
    assert push.isnan().nonzero().flatten().tolist() == [2]


def test_large_ranges_keep_the_way_that_cannot_overflow() -> None:
    values, positive, negative = drawn(4)
    steep = Side(2000.0, -1.0)
    with tracing():
        near, far = logsumexps(values.float(), positive.float(), negative.float(), pull=PULL, push=steep)
    assert bool(far[negative.sum(1) > 0].isfinite().all()) and bool(near[positive.sum(1) > 0].isfinite().all())


def test_log1p_by_a_polynomial_is_exact_to_float32() -> None:
    values = torch.cat([torch.linspace(0, 1, 100_001), torch.logspace(-37, 0, 10_001)])
    found = values * reductions._log1p_over(values)
    expected = values.double().log1p()
    assert float(((found - expected).abs() / expected.clamp(min=1e-38)).max()) < 3e-7


@pytest.mark.parametrize("value", [-1000.0, -90.0, -20.0, -1.0, 0.0, 1.0, 20.0, 90.0, 1000.0])
def test_softplus_of_a_compiler_is_that_of_torch(value: float) -> None:
    given = torch.tensor([value])
    with tracing():
        found = reductions.softplus(given)
    expected = torch.logaddexp(given.double(), torch.zeros(1, dtype=torch.float64))
    torch.testing.assert_close(found.double(), expected, rtol=3e-7, atol=1e-37)
    assert given.item() == value

"""Gradients against finite differences, for losses without constants, away from kinks; dense and blocked."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

from nearkin import engine, losses
from nearkin.pairs import Few, split
from tests.losses.cases import FIXED, Case, batch

# Weights, sets or scales that the definition holds constant: there the reference's surrogate is the truth instead.
CONSTANTS = ("ranked_list", "circle", "struct_clust")


def smooth(case: Case) -> bool:
    return case.name not in CONSTANTS and not case.settings.get("range_slack")


@pytest.mark.parametrize("case", [case for case in FIXED if smooth(case)], ids=lambda case: case.id)
def test_gradients_equal_finite_differences(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.size, "block_rows", lambda rows, columns, device: min(rows, 3))
    embeddings, labels = batch(11, 9)
    for mode in ("dense", "blocked") if case.rowwise else ("dense",):
        loss = case.make(engine=mode)
        inputs = [embeddings, *[parameter.detach().requires_grad_(True) for parameter in loss.parameters()]]
        names = [name for name, _ in loss.named_parameters()]

        def value(*tensors: torch.Tensor, loss: losses.Loss = loss, names: list[str] = names) -> torch.Tensor:
            given = dict(zip(names, tensors[1:], strict=True))
            return torch.func.functional_call(loss, given, (tensors[0], labels))

        # Blocked equals dense to the last digits (test_engine.py), so some directions of its gradient are enough.
        assert torch.autograd.gradcheck(value, inputs, eps=1e-6, atol=1e-6, rtol=1e-5, fast_mode=mode == "blocked")


def test_the_check_can_fail() -> None:
    """ranked_list holds its weights constant, so finite differences of the whole expression disagree."""
    embeddings, labels = batch(11, 9)
    loss = losses.create("ranked_list", gallery_gradient=True)
    with pytest.raises(GradcheckError):
        torch.autograd.gradcheck(lambda x: loss(x, labels), [embeddings], eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.id)
def test_second_derivatives_are_right_or_an_error(case: Case) -> None:
    """The gradient of a penalty on the gradient, along one direction: as finite differences say, or none."""
    embeddings, labels = batch(11, 9)
    direction = torch.randn(embeddings.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for mode in ("dense", "blocked", "compiled:aot_eager") if case.rowwise else ("dense",):
        loss = case.make(engine=mode)

        def slope(at: torch.Tensor, loss: losses.Loss = loss, again: bool = False) -> torch.Tensor:
            (found,) = torch.autograd.grad(loss(at, labels), at, create_graph=again)
            return found

        try:
            (found,) = torch.autograd.grad(slope(embeddings, again=True).square().sum(), embeddings)
        except RuntimeError as error:
            assert str(error) == (
                "create_graph must be False for a loss of nearkin, got True: it has first derivatives only; leave "
                "create_graph out, and take penalties on gradients of something else."
            )
            continue
        step = 1e-5 * direction
        ahead, behind = (slope((embeddings + way * step).detach().requires_grad_()).square().sum() for way in (1, -1))
        torch.testing.assert_close((found * direction).sum(), (ahead - behind) / 2e-5, rtol=1e-4, atol=1e-7)


def test_the_few_columns_of_a_split_may_be_differentiated_twice() -> None:
    """A gradient that is written into another would be wrong the second time."""
    values = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    few = Few(torch.tensor([[1], [0], [3], [2]]), torch.ones(4, 1, dtype=torch.float64))

    def cubes(values: torch.Tensor) -> torch.Tensor:
        near, p, far, n = split(values, few, torch.ones_like(values), alone=True)
        return (near.pow(3) * p).sum() + (far.pow(3) * n).sum()

    assert torch.autograd.gradgradcheck(cubes, [values])

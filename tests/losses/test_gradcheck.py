"""Gradients against finite differences, for losses without constants, away from kinks; dense and blocked."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

from nearkin import engine, losses
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

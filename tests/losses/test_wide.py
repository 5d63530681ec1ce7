"""Reductions over wide rows in two levels give the same value and the same gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from nearkin import losses
from nearkin.engine import compiled, wide
from tests.losses.cases import ROWWISE, Case, batch, gradients


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of a dozen columns are wide, and the compiler is told to run what was traced as it is."""
    monkeypatch.setattr(wide, "LEAST", 6)
    monkeypatch.setattr(wide, "STRETCH", 4)
    monkeypatch.setattr(wide, "FEWEST", 2)
    numbers: list[int] = []

    def run(traced: Any, **options: Any) -> Any:
        numbers.append(wide.split(traced))
        traced.graph.lint()
        return traced

    monkeypatch.setattr(compiled.torch, "compile", run)
    return numbers


@pytest.mark.parametrize("case", ROWWISE, ids=lambda case: case.id)
def test_two_levels_equal_one(case: Case, split: list[int]) -> None:
    found = []
    for engine in ("compiled", "dense"):
        loss = case.make(engine=engine)
        embeddings, labels = batch(3, 12)
        value = loss(embeddings, labels)
        found.append([value.detach(), *gradients(value, embeddings, *loss.parameters())])
    for first, second in zip(*found, strict=True):
        torch.testing.assert_close(first, second)
    assert len(split) >= 1


def test_most_reductions_are_split(split: list[int]) -> None:
    for name, number in {"ranked_list": 4, "contrastive": 2, "binomial_deviance": 4}.items():
        split.clear()
        losses.create(name, engine="compiled").double()(*batch(3, 12))
        assert split == [number], name


@pytest.mark.parametrize("shape", [(3, 5), (3, 7), (12,), (2, 3, 12)])
def test_what_is_narrow_or_has_no_stretch_is_left_alone(split: list[int], shape: tuple[int, ...]) -> None:
    traced = make_fx(lambda x: x.sum(-1))(torch.ones(shape))
    assert wide.split(traced) == 0


def test_columns_stay_whole(split: list[int]) -> None:
    assert wide.split(make_fx(lambda x: x.sum(0))(torch.ones(12, 12))) == 0
    traced = make_fx(lambda x: x.amax(1, keepdim=True))(torch.ones(5, 12))
    assert wide.split(traced) == 1
    assert traced(torch.arange(60.0).reshape(5, 12)).flatten().tolist() == [11, 23, 35, 47, 59]

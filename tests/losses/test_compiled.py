"""Compiled gives the value and the gradients of dense."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch

from nearkin import WeightedPairs, engine, losses
from nearkin.engine.blocked import blocked
from tests.losses.cases import ROWWISE, Case, batch, gradients
from tests.losses.test_engine import _small_blocks, narrowed, run, same

__all__ = ["_small_blocks"]  # blocks of four rows here, too


@pytest.fixture(autouse=True, scope="module")
def _kind_of_mask() -> None:
    """Once is enough: what is compiled makes its masks from labels itself, always as a matrix."""


@pytest.mark.parametrize("case", ROWWISE, ids=lambda case: case.id)
def test_compiled_equals_dense(case: Case) -> None:
    """Two blocks of one shape, since another is compiled anew; that the last may be shorter is tested below."""
    torch._dynamo.reset()
    same(run(case, "dense", rows=8), run(case, "compiled:aot_eager", rows=8))


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("name", ["ranked_list", "multi_similarity", "proxy_anchor"])
def test_the_real_compiler_equals_dense(name: str) -> None:
    torch._dynamo.reset()
    case = next(case for case in ROWWISE if case.name == name)
    same(run(case, "dense"), run(case, "compiled"))


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize(
    "rule", [torch.exp, torch.sigmoid, lambda s: torch.softmax(s, 1)], ids=["exp", "sigmoid", "softmax"]
)
def test_the_real_compiler_takes_any_rule(rule: Any) -> None:
    """What is kept of the similarities must not be written over: the compiler failed with KeyError: 'buf0'."""
    torch._dynamo.reset()
    embeddings, labels = batch(3, 8)
    found = []
    for mode in ("dense", "compiled"):
        value = WeightedPairs(rule=lambda s, p, n: rule(s), engine=mode)(embeddings, labels)
        found.append([value, *gradients(value, embeddings)])
    same(*found)


def test_compiled_steps_follow_settings_that_change() -> None:
    embeddings, labels = batch(3, 11)
    loss: Any = losses.create("multi_similarity", engine="compiled:aot_eager")
    before = loss(embeddings, labels)
    loss.alpha = 5.0
    same([loss(embeddings, labels)], [losses.create("multi_similarity", alpha=5.0)(embeddings, labels)])
    assert not torch.equal(before, loss(embeddings, labels))


def test_a_loss_of_ever_new_shapes_stops_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.compiled, "MOST", 2)
    traced: list[int] = []
    compile_step = engine.compiled._compile

    def counted(*arguments: Any) -> Any:
        traced.append(1)
        return compile_step(*arguments)

    monkeypatch.setattr(engine.compiled, "_compile", counted)
    loss = losses.create("contrastive", engine="compiled:aot_eager")
    for n in (4, 8, 9, 10, 11):
        embeddings, labels = batch(n, n)
        same([loss(embeddings, labels)], [losses.create("contrastive")(embeddings, labels)])
    assert len(traced) == 2


def test_compiled_products_of_16_bits_equal_blocked_ones() -> None:
    embeddings, labels = batch(3, 11)
    vectors = embeddings.detach().float().requires_grad_(True)
    loss = losses.create("multi_similarity").float()
    found = []
    for value in (
        blocked(narrowed(loss.plan(vectors, labels))),
        engine.run(narrowed(loss.plan(vectors, labels)), "compiled:aot_eager"),
    ):
        found.append([value.detach(), *gradients(value, vectors)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)

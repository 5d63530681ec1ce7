"""Compiled gives the value and the gradients of dense."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from nearkin import WeightedPairs, engine, losses, miners
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


class Sharp(losses.Contrastive):
    """Holds a number that is no setting."""

    name = "sharp"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.sharp = 1.0
        self._hidden = 1.0
        self.several = [1.0]

    def rows(self, matrix: Tensor, mined: Any, extra: Any, sizes: Any) -> Any:
        return super().rows(matrix * self.sharp * self._hidden * self.several[0], mined, extra, sizes)


def test_compiled_steps_follow_what_a_loss_of_ones_own_holds() -> None:
    embeddings, labels = batch(3, 11)
    loss = Sharp(engine="compiled:aot_eager")
    for sharp in (1.0, 3.0, 0.5, 1.0):
        loss.sharp = sharp
        other = Sharp(engine="blocked")
        other.sharp = sharp
        same([loss(embeddings, labels)], [other(embeddings, labels)])
    assert len(engine.compiled._STEPS[loss]) == 3 * 2  # blocks have two shapes
    for change in (lambda x: setattr(x, "_hidden", 2.0), lambda x: x.several.__setitem__(0, 0.3)):
        change(loss), change(other)
        same([loss(embeddings, labels)], [other(embeddings, labels)])


class Band:
    """A miner that holds a number."""

    def __init__(self, least: float) -> None:
        self.least = least
        self._most = [1.0]

    def __call__(self, similarity: Tensor, positive: Tensor, negative: Tensor) -> Any:
        return positive, negative * (similarity > self.least) * (similarity < self._most[0])

    def mine(self, similarity: Tensor, positive: Tensor, negative: Tensor) -> Any:
        return self(similarity, positive, negative)


def test_compiled_steps_follow_miners_of_ones_own() -> None:
    """Also where one comes to lie where another has been, and where one is told something else."""
    embeddings, labels = batch(3, 11)
    loss: Any = losses.create("contrastive", engine="compiled:aot_eager")

    def agrees(miner: Any) -> None:
        loss.miner = miner
        same(
            [loss(embeddings, labels)],
            [losses.create("contrastive", engine="blocked", miner=miner)(embeddings, labels)],
        )

    for least in (-0.9, -0.2, 0.1, 0.3):
        agrees(lambda similarity, positive, negative, least=least: (positive, negative * (similarity > least)))
    band = Band(-0.5)
    for least in (-0.5, 0.2):
        band.least = least
        agrees(band)
        agrees(band.mine)
    band._most[0] = 0.6
    agrees(band)
    assert len(engine.compiled._STEPS[loss]) == 9 * 2


def test_a_step_is_found_again_by_another_miner_of_the_same_settings() -> None:
    embeddings, labels = batch(3, 11)
    loss: Any = losses.create("contrastive", engine="compiled:aot_eager")
    for _ in range(2):
        loss.miner = miners.create("semihard")
        loss(embeddings, labels)
    assert len(engine.compiled._STEPS[loss]) == 2


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
        with pytest.warns(UserWarning, match="Contrastive has compiled 2 steps") if n > 8 else nullcontext():
            value = loss(embeddings, labels)
        same([value], [losses.create("contrastive")(embeddings, labels)])
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

"""Training on a CUDA device: the same bits after a resume, no wait in a step, what goes wrong held back."""

from __future__ import annotations

import functools
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from nearkin.distributed import Ranks
from nearkin.train import graph, prepare
from nearkin.train.loop import _Run, train
from nearkin.train.screen import Silent
from nearkin.train.watch import Diverged
from tests.patience import until
from tests.train.runs import left, tiny, train_in_parts

pytestmark = pytest.mark.gpu
CUDA = {"device": "cuda", "deterministic": True}


@pytest.mark.parametrize(
    "changes", [{}, {"graph": False}, {"loss": "proxy_anchor", "sampler": "random", "frozen_batch_norm": True}]
)
def test_a_resumed_run_has_the_same_bits(tmp_path: Path, changes: dict[str, Any], monkeypatch: Any) -> None:
    train(tiny(tmp_path / "whole", tmp_path / "packs", **CUDA, **changes))
    settings = tiny(tmp_path / "parts", tmp_path / "packs", **CUDA, **changes)
    train_in_parts(settings, (3, 8, 13), monkeypatch)
    assert left(tmp_path / "parts") == left(tmp_path / "whole")


@pytest.mark.parametrize("loss", ["multi_similarity", "proxy_anchor", "ranked_list", "margin", "triplet"])
def test_a_step_never_waits_for_the_device(tmp_path: Path, loss: str) -> None:
    settings = tiny(tmp_path / "run", tmp_path / "packs", device="cuda", loss=loss, warm_up=0)
    device = torch.device("cuda", 0)
    with prepare.machine(settings, device):
        run = _Run(settings, device, Ranks(), Silent(), False)
        run._new_layers_only(False)
        batches = run._batches(10)
        images, labels, _ = next(batches)
        run._record(images, False)
        for _ in range(3):  # until the loss is recorded
            run._one_step(images, labels, 0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it says that it is a prototype
                torch.cuda.set_sync_debug_mode("error")
            for _ in range(3):
                images, labels, _ = next(batches)
                run._one_step(images, labels, 0)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_a_bad_step_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host hears of it some steps later; the weights are still those before the step."""
    settings = tiny(tmp_path / "run", tmp_path / "packs", warm_up=0, evaluate_every=0, checkpoint_every=1e9, **CUDA)
    before: dict[str, torch.Tensor] = {}
    real, runs = _Run._loss, []

    def loss(self: Any, *args: Any) -> torch.Tensor:
        if self.step == 6:
            before.update({name: value.clone() for name, value in self.model.named_parameters()})
        runs.append(self)
        return real(self, *args) * (float("nan") if self.step == 6 else 1.0)

    monkeypatch.setattr(_Run, "_loss", loss)
    with pytest.raises(Diverged, match="the loss became nan in step 6 of 20"):
        train(settings)
    for name, value in runs[-1].model.named_parameters():
        assert value.equal(before[name]), name


def test_gradient_caching_equals_the_whole_batch(tmp_path: Path) -> None:
    same: dict[str, Any] = {"frozen_batch_norm": True, "precision": "float64", "warm_up": 0, **CUDA}
    train(tiny(tmp_path / "whole", tmp_path / "packs", **same))
    train(tiny(tmp_path / "parts", tmp_path / "packs", chunk=5, **same))
    from nearkin import checkpoint

    one, two = (checkpoint.load(tmp_path / name / "checkpoint") for name in ("whole", "parts"))
    assert one is not None and two is not None
    for name, value in one.tensors["model"].items():
        torch.testing.assert_close(two.tensors["model"][name], value, rtol=1e-8, atol=1e-9)


def test_a_network_is_recorded_while_a_feed_takes_pinned_memory() -> None:
    """Which is an error for everybody where a recording is one of all threads."""
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 4)).cuda().train()
    images = torch.randn(32, 8, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    ended, taken = threading.Event(), []

    def feed() -> None:
        # All are kept, so that none is taken from what was given back; small, and so few that they stay below 256 MiB.
        while not ended.wait(0.001) and len(taken) < 2**16:
            taken.append(torch.empty(4096, dtype=torch.uint8, pin_memory=True))

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        until(lambda: len(taken) > 2)
        before = len(taken)
        replay = graph.record(Levels(net), ("final",), images, functools.partial(torch.autocast, "cuda", enabled=False))
    finally:
        ended.set()
        thread.join()
    torch.testing.assert_close(replay(images)["final"], net(images))
    assert len(taken) > before


class Levels(torch.nn.Module):
    """A network as training has it: levels by name."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"final": self.net(images)}

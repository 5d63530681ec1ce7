"""What surrounds the recording of a network; that it records is tested on a GPU."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nearkin.train import graph
from nearkin.train.loop import _Run, train
from tests.train.runs import tiny


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return {"level": self.norm(images)}


def test_threads_of_a_feed_do_not_end_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "torch.cuda.graph(" in inspect.getsource(torch.cuda.make_graphed_callables)
    asked: list[dict[str, Any]] = []

    def usual(recorded: Any, **options: Any) -> contextlib.nullcontext[None]:
        asked.append(options)
        return contextlib.nullcontext()

    def callables(module: nn.Module, given: tuple[Tensor, ...]) -> nn.Module:
        with torch.cuda.graph(None, pool=None):  # type: ignore[arg-type]
            module(*given)
        return module

    monkeypatch.setattr(torch.cuda, "graph", usual)
    monkeypatch.setattr(torch.cuda, "make_graphed_callables", callables)
    net, images = Net(), torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    replay = graph.record(net, ("level",), images, lambda **options: contextlib.nullcontext())
    assert asked == [{"pool": None, "capture_error_mode": "thread_local"}]
    assert torch.cuda.graph is usual
    assert int(net.norm.num_batches_tracked) == 0 and replay(images)["level"].shape == (4, 3)


def test_seconds_of_recording_are_counted_apart_and_kept_over_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of training stands still meanwhile; where nothing was recorded, nothing is said of it."""
    assert "recording_seconds" not in train(tiny(tmp_path / "plain", tmp_path / "packs", epochs=1))
    now = itertools.count(0.0, 4.0)
    wanted = tiny(tmp_path / "run", tmp_path / "packs", epochs=2)
    real = _Run._record

    def record(self: _Run, images: Tensor, warm: bool) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(self, "device", SimpleNamespace(type="cuda"))
            patch.setattr(graph, "record", lambda model, *given: model)
            patch.setattr("nearkin.train.loop.time", SimpleNamespace(perf_counter=lambda: next(now)))
            before = self.clock.seconds
            since, self.clock.since = self.clock.since, None  # of the real clock
            real(self, images, warm=False)
            assert self.clock.seconds == before
        self.clock.since = since

    monkeypatch.setattr(_Run, "_record", record)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(_Run, "_end_epoch", lambda *given: (_ for _ in ()).throw(MemoryError("stopped by the test")))
        train(wanted)
    assert train(wanted, resume=True)["recording_seconds"] == 8.0  # each process records once

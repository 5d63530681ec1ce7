"""What surrounds the recording of a network; that it records is tested on a GPU."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nearkin.train import graph


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

"""The network's kernels recorded once and replayed: a fast device waits for the host that launches them one by one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Forward = Callable[[Tensor], Mapping[str, Tensor]]


class _Recorded(nn.Module):
    """The model under autocast, as one thing to record."""

    def __init__(self, model: nn.Module, autocast: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.autocast = model, autocast

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        # What autocast keeps between calls would be recorded as if it were always there.
        with self.autocast(cache_enabled=False):
            return tuple(self.model(images).values())


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Recording that other threads do not end: those of a feed take pinned memory, by default an error for everybody."""
    usual = torch.cuda.graph
    # ``make_graphed_callables`` has no argument for it.
    torch.cuda.graph = functools.partial(usual, capture_error_mode="thread_local")  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        torch.cuda.graph = usual  # type: ignore[misc]


def record(model: nn.Module, levels: tuple[str, ...], images: Tensor, autocast: Callable[..., Any]) -> Forward:
    """Forward and backward of a model in training mode as CUDA graphs for batches like ``images``.

    Recording runs the model a few times; buffers, such as the statistics of batch norms, are put back afterwards. What
    the model gives is overwritten by the next call.
    """
    before = [buffer.clone() for buffer in model.buffers()]
    with warnings.catch_warnings(), _undisturbed():
        # Recording happens on a stream of its own, on purpose; torch warns that earlier steps ran on another.
        warnings.simplefilter("ignore", UserWarning)
        recorded = torch.cuda.make_graphed_callables(_Recorded(model, autocast).train(model.training), (images,))
    with torch.no_grad():
        for buffer, value in zip(model.buffers(), before, strict=True):
            buffer.copy_(value)

    def replay(batch: Tensor) -> dict[str, Tensor]:
        found: tuple[Tensor, ...] = recorded(batch)  # type: ignore[assignment]
        return dict(zip(levels, found, strict=True))

    return replay

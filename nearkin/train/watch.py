"""Looks at every step, and catches a loss that is not finite or a batch that has collapsed, without making the device wait.

On a device each step leaves four numbers in a queue that is copied to the host now and then. A step that went wrong sets a
flag on the device which holds every later update back, so that the weights stay those before it until the host
has read of it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

# Steps between two copies to the host.
EVERY = 16


class Diverged(RuntimeError):  # noqa: N818  # it says what happened
    """Training went wrong in ``step``; the weights are still those before it."""

    def __init__(self, step: int, message: str) -> None:
        super().__init__(message)
        self.step = step


class Watch:
    """What happened in each step, in order."""

    def __init__(self, device: torch.device, collapse: float) -> None:
        self.device, self.collapse = device, collapse
        self.stopped = torch.zeros((), device=device)
        self.facts: list[dict[str, Any]] = []
        self.numbers: list[Tensor] = []
        self.copies: list[tuple[list[dict[str, Any]], Tensor, Any]] = []

    def see(self, value: Tensor, norm: Tensor, spread: Tensor, **facts: Any) -> Tensor:
        """Take a step's loss, gradient norm and spread; returns the flag (0 or 1) that holds its update back."""
        bad = ~(value.isfinite() & norm.isfinite()) | (spread < self.collapse)
        self.stopped = torch.maximum(self.stopped, bad.float())
        self.facts.append(facts)
        self.numbers.append(torch.stack([value.double(), norm.double(), spread.double()]))
        if len(self.facts) >= EVERY or self.device.type == "cpu":
            self._copy()
        return self.stopped

    def _copy(self) -> None:
        if not self.facts:
            return
        numbers = torch.stack(self.numbers)
        done = None
        if self.device.type == "cuda":
            host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            host.copy_(numbers, non_blocking=True)
            done = torch.cuda.Event()
            done.record()
            numbers = host
        self.copies.append((self.facts, numbers, done))
        self.facts, self.numbers = [], []

    def records(self, wait: bool = False) -> list[dict[str, Any]]:
        """The steps whose numbers have reached the host; with ``wait`` all of them. Raises at one that went wrong."""
        if wait:
            self._copy()
        found = []
        while self.copies and (wait or self.copies[0][2] is None or self.copies[0][2].query()):
            facts, numbers, done = self.copies.pop(0)
            if done is not None:
                done.synchronize()
            for fact, (value, norm, spread) in zip(facts, numbers.tolist(), strict=True):
                if message := self._wrong(value, norm, spread):
                    self.copies.clear()
                    raise Diverged(fact["step"], message)
                found.append({**fact, "loss": value, "norm": norm, "spread": spread})
        return found

    def _wrong(self, value: float, norm: float, spread: float) -> str:
        if not math.isfinite(value):
            return f"the loss became {value}"
        if not math.isfinite(norm):
            return f"the gradient became {norm} while the loss was {value:.4g}"
        if not spread >= self.collapse:
            return f"the embeddings collapsed to one point (spread {spread:.2g}, loss {value:.4g})"
        return ""

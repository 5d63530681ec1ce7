"""Whether what runs now is being traced for a compiler, which wants other steps than a CPU: none in place, few passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_TRACED: ContextVar[bool] = ContextVar("traced", default=False)


@contextmanager
def tracing() -> Iterator[None]:
    """Everything inside is traced."""
    token = _TRACED.set(True)
    try:
        yield
    finally:
        _TRACED.reset(token)


def by_engine() -> bool:
    """By the engine, which knows what it calls a row function with."""
    return _TRACED.get()


def traced() -> bool:
    """By the engine or by a user."""
    return by_engine() or torch.compiler.is_compiling()

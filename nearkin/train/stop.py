"""Ctrl-C asks a run to stop at the end of its step; a second one stops at once. SIGTERM, from a batch system, asks too."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

TWICE = 0.5
"""Seconds in which a second signal is the first again: a wrapper passes on what the process has got already."""


class Terminated(KeyboardInterrupt):
    """An interruption by SIGTERM."""


class Stop:
    """While open, the first SIGINT or SIGTERM sets ``asked`` and a later one interrupts."""

    def __init__(self) -> None:
        self.asked = False
        self.heard: float | None = None
        self.kind: type[KeyboardInterrupt] = KeyboardInterrupt
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if _in_main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._hear)
        return self

    def _hear(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.heard is None:
            self.heard, self.asked, self.kind = now, True, _kind(number)
        elif now - self.heard > TWICE:
            raise _kind(number)("stopped at once; the last checkpoint stays.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """While open, SIGTERM interrupts as Ctrl-C does."""
    if not _in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def hearing() -> Stop | None:
    """The one that hears signals now."""
    found = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    return found if isinstance(found, Stop) else None


def ask() -> None:
    """Ask what this process does to stop, from any thread; it does not count as a signal, which may come as well."""
    stop = hearing()
    if stop is None:
        os.kill(os.getpid(), signal.SIGINT)
    else:
        stop.asked = True


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _kind(number)


def _kind(number: int) -> type[KeyboardInterrupt]:
    return Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

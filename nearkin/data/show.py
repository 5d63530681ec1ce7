"""Progress of long work with bytes: bars where a person watches, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nearkin.data.get import Progress

SECONDS = 5.0


@contextmanager
def shown_progress(stream: Any = None) -> Iterator[Progress]:
    """A function that shows how far each piece of work is; on standard error, so that results can be piped."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        yield Lines(stream)
        return
    from rich.markup import escape

    bars = _bars(stream)
    tasks: dict[str, Any] = {}

    def show(what: str, done: int, total: int | None) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(escape(what), total=total)
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield show


class Lines:
    """A line at the beginning, every few seconds, and at the end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._last: dict[str, float] = {}
        self._ended: set[str] = set()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        end = total is not None and done >= total
        if what in self._ended or (not end and now - self._last.get(what, -SECONDS) < SECONDS):
            return
        self._last[what] = now
        if end:
            self._ended.add(what)
        share = f" of {total / 1e6:,.1f} MB ({100 * done / total:.0f}%)" if total else " MB"
        print(f"{what}: {done / 1e6:,.1f}{share}", file=self._stream, flush=True)


def _bars(stream: Any) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TextColumn("left"),
        TimeRemainingColumn(), console=Console(file=stream),
    )  # fmt: skip

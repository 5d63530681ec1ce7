"""How tests wait: only a fault, never a busy machine, makes them wait in vain."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 300.0  # seconds for what should come at once

Found = TypeVar("Found")


def until(ask: Callable[[], Found], pause: float = 0.02) -> Found:
    """The first answer that is not false, none or nothing."""
    end = time.monotonic() + PATIENCE
    while not (found := ask()):
        assert time.monotonic() < end, "it did not come to pass in time"
        time.sleep(pause)
    return found


def quickest(do: Callable[[], object], enough: float, tries: int = 10) -> float:
    """Seconds of the quickest of some tries, of no more than it takes until one was quick enough.

    What else a machine does makes a try slow and none quick, so a limit on this is one on the code alone.
    """
    best = float("inf")
    for _ in range(tries):
        begin = time.monotonic()
        do()
        best = min(best, time.monotonic() - begin)
        if best < enough:
            break
    return best

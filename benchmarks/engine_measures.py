"""Time and memory of one call of a loss on a GPU."""

from __future__ import annotations

import contextlib
import gc
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from engine_compared import Step

from nearkin.engine.recording import _RECORDINGS

LONG = 10.0
"""Seconds of a call after which it is not made again to be measured better."""
PATIENCE = 60
"""Seconds after which a measurement is given up."""
LATE = f"not in {PATIENCE} s"


def milliseconds(function: Callable[[], Any], seconds: float = 0.5) -> dict[str, float]:
    """Median and spread of calls as the device saw them, launches and all; of calls that take seconds, two, and of those
    that take longer still, one."""
    begin = time.perf_counter()
    function()
    torch.cuda.synchronize()
    once = time.perf_counter() - begin
    if once > LONG:
        return only(once)
    least = 2 if once > 2 else 5
    for _ in range(least - 2):
        function()
    torch.cuda.synchronize()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < least or (len(times) < 5000 and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return {"median": statistics.median(times), "low": min(times), "high": max(times), "rounds": len(times)}


def only(seconds: float) -> dict[str, float]:
    """What is said of a call that was measured once."""
    return {"median": seconds * 1e3, "low": seconds * 1e3, "high": seconds * 1e3, "rounds": 1}


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where what is inside takes longer."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def kept() -> int:
    """Bytes of tensors, and of what recordings keep for themselves beside the tensors in it."""
    torch.cuda.synchronize()
    own = (x for x in torch.cuda.memory_snapshot() if tuple(x["segment_pool_id"]) != (0, 0))
    return torch.cuda.memory_allocated() + sum(x["total_size"] - x["allocated_size"] for x in own)


def memory(step: Step, beforehand: int) -> tuple[int, int]:
    """Bytes that a call takes beyond inputs and gradient, with what is kept between calls; and the latter alone: what is
    ``kept`` beyond that number."""
    step.clear()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    held = kept() - beforehand
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    gradient = sum(leaf.nbytes for leaf in step.leaves)
    return torch.cuda.max_memory_allocated() - before + held - gradient, held


def recorded(loss: object) -> bool:
    """Whether calls of a loss are replayed, so that no plain one passes for a recorded one."""
    known = _RECORDINGS.get(loss) if isinstance(loss, torch.nn.Module) else None
    return known is not None and any(known.values())


def measured(step: Step, compiles: bool = True) -> dict[str, Any]:
    """Time, memory beyond inputs and gradient, and how long the first call took (compilation); or why there is none.

    The first call of what ``compiles`` tells nothing of the others; of anything else a long one is all that is measured.
    Python hears of the time only between two calls of the device: what may hang in one belongs in a process of its own.
    """
    gc.collect()  # what earlier losses held must not be given back in between
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = kept()
    step.clear()
    torch.cuda.reset_peak_memory_stats()
    beforehand = torch.cuda.memory_allocated()
    begin = time.perf_counter()
    try:
        with limited(PATIENCE):
            step()
            torch.cuda.synchronize()
        first = time.perf_counter() - begin
        if first > LONG and not compiles:
            gradient = sum(leaf.nbytes for leaf in step.leaves)
            taken = torch.cuda.max_memory_allocated() - beforehand - gradient
            return {**only(first), "bytes": taken, "held": 0, "first": first, "recorded": False}
        with limited(PATIENCE):
            found = milliseconds(step)
            taken, held = memory(step, before)
        return {**found, "bytes": taken, "held": held, "first": first, "recorded": recorded(step.loss)}
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"unfinished": "out of memory"}
    except TimeoutError:
        return {"unfinished": LATE}
    except Exception as error:  # one loss that fails does not lose the others
        return {"unfinished": f"{type(error).__name__}: {str(error)[:300]}"}


def shown(row: dict[str, Any]) -> str:
    if "unfinished" in row:
        return str(row["unfinished"])
    return f"{row['median']:9.3f} ms {row['bytes'] / 2**20:9.1f} MiB  first call {row['first']:.1f} s"

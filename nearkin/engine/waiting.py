"""Whether something waits for the device, which nothing that is recorded may."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_WAITS = "synchronizing CUDA operation"
"""What torch calls it in its warning."""
_PROTOTYPE = "Synchronization debug mode is a prototype"


@contextmanager
def never_waiting() -> Iterator[None]:
    """An error at the end where something inside waited for the device.

    A recording in which something waits fails in the middle, and after that torch takes its random numbers and memory for
    those of a recording still: this is asked before. Another thread that waits meanwhile counts as well, since torch has one
    such mode for all.
    """
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
    told = [warning for warning in heard if _PROTOTYPE not in str(warning.message)]
    for warning in told:
        if _WAITS not in str(warning.message):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if any(_WAITS in str(warning.message) for warning in told):
        raise RuntimeError("it waits for the device, as .item(), .tolist() or a mask as an index do")

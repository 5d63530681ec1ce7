"""One thread at a time compiles, and no other is inside a compiled step meanwhile.

To trace, torch changes what all threads share: methods of ``nn.Module``, and a flag that makes every call of a compiled
function an error, also of one that was compiled long ago. Two traces at once each restore what the other one had put there,
and break the compiler for the rest of the process (pytorch issues 118260, 126024). So whoever compiles lets nobody in any
more, and waits until those who are inside a step have left it.

Nobody else waits: who is not let in does without the compiler. Were there a lock to wait for, everything could stop for good
on a GPU: who traces asks for gradients, which autograd works out in one thread for each device, and that thread may be in
somebody's backward just now and want a step itself. A step asks no other thread for anything, so waiting for it ends.

What somebody else compiles in another thread is not kept away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

PAUSE = 0.001
"""Seconds between two looks whether the others have left; compiling takes hundreds of times longer."""

# Threads inside a step, and the one that is alone or waits to be. Each is written by its own thread only. Who enters says so
# first and looks for the other afterwards; who wants to be alone does the same, so at least one of two sees the other.
_INSIDE: set[int] = set()
_alone: int | None = None
_LOCK = threading.RLock()
"""Held while a thread is put in the empty place of the one that is alone."""


def enter(step: Callable[..., Any], given: Sequence[Tensor]) -> Any:
    """What a compiled step gives; None, and nothing done, while another thread compiles."""
    # No lock and no manager of a context: blocks of a large batch come here hundreds of times. Ctrl-C may come at any call
    # of a function, so what is to be taken back is inside ``try`` and taken back by one call.
    me = threading.get_ident()
    within = me in _INSIDE
    try:
        _INSIDE.add(me)
        return step(*given) if _alone is None or _alone == me else None
    finally:
        if not within:
            _INSIDE.discard(me)


@contextmanager
def alone() -> Iterator[bool]:
    """Whether this thread may compile until the end, all others being kept out; false while another one does."""
    global _alone
    me = threading.get_ident()
    if _alone == me:
        yield True
        return
    try:
        with _LOCK:
            if _alone is None:
                _alone = me
        while _alone == me and not _INSIDE.issubset({me}):
            time.sleep(PAUSE)
        yield _alone == me
    finally:
        if _alone == me:
            _alone = None

"""Whether kernels of our own can be made and run on the GPUs of this machine."""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings


def interpreted() -> bool:
    """Whether the kernel language's interpreter runs kernels on a CPU, as tests do."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def usable() -> bool:
    """Whether the kernel language is installed and finds what it needs, such as a C compiler; if not, other ways do the same
    more slowly, and a warning says why, once."""
    if importlib.util.find_spec("triton") is None:
        return False
    if interpreted():
        return True
    try:
        from triton.runtime import driver

        driver.active.get_current_target()
    except Exception as error:  # whatever is missing, there are other ways
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        warnings.warn(f"Triton cannot be used, GPU work will be slower: {reason}", stacklevel=2)
        return False
    return True

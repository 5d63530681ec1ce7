"""SciPy's distributions and tests, loaded when first needed."""

from __future__ import annotations

from typing import Any


def stats() -> Any:
    """The module scipy.stats, or one sentence that says how to get it."""
    try:
        from scipy import stats
    except ImportError:
        raise ImportError("a tournament needs SciPy; install it with pip install 'nearkin[tournament]'.") from None
    return stats

"""Optuna, asked for only when a search begins."""

from __future__ import annotations

from typing import Any


def optuna() -> Any:
    """The library, or one sentence that says how to get it."""
    try:
        import optuna as library
        import optuna.storages.journal
    except ImportError:
        raise ImportError("nearkin tune needs Optuna, got none; pip install 'nearkin[tune]'.") from None
    library.logging.set_verbosity(library.logging.WARNING)
    return library

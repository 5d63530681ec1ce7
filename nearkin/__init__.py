"""nearkin learns an embedding in which neighbours are kin.

>>> import nearkin
>>> loss = nearkin.losses.create("ranked_list")
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearkin import evaluation, losses, miners, samplers, weights
    from nearkin.estimator import Embedder
    from nearkin.losses import create as create_loss
    from nearkin.memory import CrossBatchMemory
    from nearkin.trained import Trained, load
    from nearkin.weights import WeightedPairs, curve, pair_weights

__version__ = "0.1.0"

__all__ = [
    "CrossBatchMemory",
    "Embedder",
    "Trained",
    "WeightedPairs",
    "__version__",
    "create_loss",
    "curve",
    "evaluation",
    "load",
    "losses",
    "miners",
    "pair_weights",
    "samplers",
    "weights",
]

# Where the names are that are no modules. All are loaded when first asked for: a command must be able to say that it was
# interrupted while torch is loaded.
_HOMES = {
    "CrossBatchMemory": ("memory", "CrossBatchMemory"),
    "Embedder": ("estimator", "Embedder"),
    "Trained": ("trained", "Trained"),
    "WeightedPairs": ("weights", "WeightedPairs"),
    "create_loss": ("losses", "create"),
    "curve": ("weights", "curve"),
    "load": ("trained", "load"),
    "pair_weights": ("weights", "pair_weights"),
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home, own = _HOMES[name]
        globals()[name] = found = getattr(importlib.import_module(f"nearkin.{home}"), own)
        return found
    try:
        if not name.startswith("_"):
            return importlib.import_module(f"nearkin.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"nearkin.{name}":
            raise
    raise AttributeError(f"module 'nearkin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

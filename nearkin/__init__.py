"""nearkin learns an embedding in which neighbours are kin.

>>> import nearkin
>>> loss = nearkin.losses.create("ranked_list")
"""

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

"""Reference miners; the deterministic ones return a new Samples, the drawing ones return probabilities."""

from .all import all
from .distance_weighted import distance_weighted
from .hard import hard
from .non_trivial import non_trivial
from .random import random
from .semihard import semihard
from .vthm import vthm

__all__ = ["all", "distance_weighted", "hard", "non_trivial", "random", "semihard", "vthm"]

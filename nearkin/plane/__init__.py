"""Handwritten digits in the plane: NRA's 2-D figure by one command.

``nearkin plane --root MNIST --out plane`` trains a small network to two dimensions with each of four losses, draws 5,000
test images where the network puts them, and measures how well neighbours are kin.
"""

from __future__ import annotations

from nearkin.plane.figure import Panel, figure
from nearkin.plane.precision import Ranking, rank
from nearkin.plane.runs import LOSSES, Variant, settings
from nearkin.plane.shape import Shape, shape

__all__ = ["LOSSES", "Panel", "Ranking", "Shape", "Variant", "figure", "rank", "settings", "shape"]

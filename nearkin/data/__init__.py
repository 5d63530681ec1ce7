"""Data sets: each is a function that returns `Splits`, a training and a test part that share no class."""

from nearkin.data.glyphs import glyphs
from nearkin.data.table import ImageTable, Splits

__all__ = ["ImageTable", "Splits", "glyphs"]

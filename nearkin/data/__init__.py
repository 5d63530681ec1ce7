"""Data sets: each is a function that returns `Splits`, a training and a test part that share no class."""

from nearkin.data.glyphs import Images, Splits, glyphs

__all__ = ["Images", "Splits", "glyphs"]

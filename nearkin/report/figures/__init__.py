"""Figures as SVG text, one kind in each file, made of plain values by pure functions."""

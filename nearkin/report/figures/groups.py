"""Losses below each other with their means, and a column of dots for each group that cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale, around, ticks

WIDTH = 350.0
ROW = 20.0
NAMES = 140.0
"""Room for the names of the losses, at most."""
APART = 11.0
"""From one column of dots to the next, at most."""


@dataclass(frozen=True)
class Place:
    """A loss: its value with bounds (not numbers where there are none), and how the value is written."""

    label: str
    value: float
    said: str
    low: float = math.nan
    high: float = math.nan


def groups(name: str, title: str, under: str, rows: Sequence[Place], joined: Sequence[Sequence[int]]) -> Figure:
    """One panel, narrow enough for a telephone; ``joined``: rows of each group, a column of dots each."""
    head, top = draw.heading(WIDTH, title, under)
    left = min(NAMES, 8 + max(draw.wide(row.label) for row in rows))
    apart = min(APART, 70 / max(len(joined), 1))
    dots = WIDTH - apart * len(joined)
    beside = dots - 8 - max(draw.wide(row.said) for row in rows)
    ends = [end for row in rows for end in (row.low, row.value, row.high) if math.isfinite(end)]
    low, high = (min(ends), max(ends)) if max(ends) > min(ends) else around(min(ends), max(ends), 3)
    x, bottom = Scale(low, high, left + 10, beside - 12), top + ROW * len(rows) + 4
    parts = [head, draw.line(left, bottom, beside - 4, bottom)]
    for tick in ticks(low, high, 3):
        parts += [draw.line(x(tick), top, x(tick), bottom, "grid")]
        parts += [draw.text(x(tick), bottom + 14, f"{tick:g}", "middle", "soft", size=11)]
    for number, row in enumerate(rows):
        parts.append(_row(row, top + ROW * (number + 0.5), left, dots - 8, x))
    for number, group in enumerate(joined):
        at, places = dots + apart * (number + 0.5), [top + ROW * (place + 0.5) for place in group]
        column = [f'<circle class="f-hit" cx="{at:.1f}" cy="{here:.1f}" r="3.4"/>' for here in places]
        said = "cannot be told apart: " + ", ".join(rows[place].label for place in group)
        parts.append(draw.group([draw.line(at, places[0], at, places[-1], "k-hit", 2), *column], said))
    return Figure(name, f"{title}. {under}", WIDTH, bottom + 20, "".join(parts))


def _row(row: Place, middle: float, left: float, right: float, x: Scale) -> str:
    parts = [draw.text(left - 2, middle + 4, draw.shorten(row.label, left - 2), "end")]
    parts += [draw.text(right, middle + 4, row.said, "end")]
    if math.isfinite(row.low):
        parts += [draw.line(x(row.low), middle, x(row.high), middle, "pen", 1.5)]
        parts += [draw.line(x(end), middle - 3, x(end), middle + 3, "pen", 1.5) for end in (row.low, row.high)]
    parts.append(f'<circle class="f-hit" cx="{x(row.value):.1f}" cy="{middle:.1f}" r="3.8"/>')
    return draw.group(parts, f"{row.label}: {row.said}", "row")

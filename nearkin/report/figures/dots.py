"""Rows of marks on one axis: the same loss under several networks, or by two choices of the epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale, around, ticks
from nearkin.report.palette import style
from nearkin.tournament.words import percent

WIDTH = 370.0
ROW = 20.0


def dots(
    name: str,
    title: str,
    under: str,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    kinds: Sequence[str],
    width: float = WIDTH,
) -> Figure:
    """One panel: for each row its name and a mark for each kind, values as shares of 1; a line joins them."""
    head, top = draw.heading(width, title, under)
    looks = {kind: style(number) for number, kind in enumerate(kinds)}
    key, tall = draw.legend(0, top, [(kind, looks[kind]) for kind in kinds], width)
    top += tall + 6
    values = [100 * value for _, row in rows for value in row.values() if math.isfinite(value)]
    low, high = around(min(values, default=0.0), max(values, default=1.0), 6)
    left = min(150.0, 10 + draw.wide(max((label for label, _ in rows), key=len, default="")))
    x = Scale(low, high, left + 8, width - 12)
    bottom = top + ROW * len(rows) + 2
    parts = [head, key]
    for tick in ticks(low, high, 4):
        parts += [draw.line(x(tick), top, x(tick), bottom, "grid")]
        parts += [draw.text(x(tick), bottom + 14, f"{tick:g}", "middle", "soft", size=11)]
    for place, (label, row) in enumerate(rows):
        middle = top + ROW * place + ROW / 2
        real = {kind: value for kind, value in row.items() if math.isfinite(value)}
        drawn = [draw.text(left - 4, middle + 4, draw.shorten(label, left - 4), "end")]
        if len(real) > 1:
            ends = [x(100 * value) for value in real.values()]
            drawn.append(draw.line(min(ends), middle, max(ends), middle, "axis", 1.5))
        # Where two marks fall together the first lies on the other, which is larger, so that both are seen.
        sizes = {kind: 5.8 if number and len(kinds) == 2 else 4.4 for number, kind in enumerate(kinds)}
        drawn += [draw.mark(x(100 * real[kind]), middle, looks[kind], sizes[kind]) for kind in reversed(real)]
        said = ", ".join(f"{kind} {percent(row.get(kind, math.nan))}" for kind in kinds)
        parts.append(draw.group(drawn, f"{label}: {said}", "row"))
    return Figure(name, f"{title}. {under}", width, bottom + 20, "".join(parts))

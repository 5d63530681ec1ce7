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
CLOSE = 7.0
"""Marks nearer to each other than this cover one another."""
ASIDE = 7.0
"""How far a mark may stand from the middle of its row."""


def dots(
    name: str,
    title: str,
    under: str,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    kinds: Sequence[str],
    width: float = WIDTH,
    band: tuple[float, float] | None = None,
) -> Figure:
    """One panel: for each row its name and a mark for each kind, values as shares of 1; a line joins them.

    ``band``: bounds of the values that are marked, and that the axis holds: small distances shall not look large.
    """
    head, top = draw.heading(width, title, under)
    looks = {kind: style(number) for number, kind in enumerate(kinds)}
    key, tall = draw.legend(0, top, [(kind, looks[kind]) for kind in kinds], width)
    top += tall + 6
    values = [100 * value for _, row in rows for value in row.values() if math.isfinite(value)]
    values += [100 * end for end in band or ()]
    low, high = around(min(values, default=0.0), max(values, default=1.0), 6)
    left = min(150.0, 10 + draw.wide(max((label for label, _ in rows), key=len, default="")))
    x = Scale(low, high, left + 8, width - 12)
    bottom = top + ROW * len(rows) + 2
    parts = [head, key]
    if band is not None:
        begin, end = (x(100 * value) for value in band)
        parts.append(draw.band(begin, top, end - begin, bottom - top))
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
        places = {kind: x(100 * value) for kind, value in real.items()}
        for kind, aside in beside(places).items():
            drawn.append(draw.mark(places[kind], middle + aside, looks[kind], 4.4))
        said = ", ".join(f"{kind} {percent(row.get(kind, math.nan))}" for kind in kinds)
        parts.append(draw.group(drawn, f"{label}: {said}", "row"))
    return Figure(name, f"{title}. {under}", width, bottom + 20, "".join(parts))


def beside(places: Mapping[str, float]) -> dict[str, float]:
    """How far above or below the middle of its row each mark stands, so that those that fall together are all seen.

    >>> beside({"seed 0": 40.0, "seed 1": 90.0, "seed 2": 41.0})
    {'seed 0': -3.0, 'seed 2': 3.0, 'seed 1': 0.0}
    """
    found: dict[str, float] = {}
    together: list[str] = []
    for kind in sorted(places, key=lambda one: places[one]):
        if together and places[kind] - places[together[-1]] >= CLOSE:
            found |= _spread(together)
            together = []
        together.append(kind)
    return found | _spread(together)


def _spread(kinds: Sequence[str]) -> dict[str, float]:
    step = min(6.0, 2 * ASIDE / max(len(kinds) - 1, 1))
    return {kind: (number - (len(kinds) - 1) / 2) * step for number, kind in enumerate(kinds)}

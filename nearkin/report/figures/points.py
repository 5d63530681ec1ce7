"""The map of an embedding: every point an image, misses crossed, some classes in colour and by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale
from nearkin.report.palette import style

WIDTH = 720.0
HEIGHT = 500.0
NAMED = 8


@dataclass(frozen=True)
class Point:
    """Where an image lies, the name of its class, whether its nearest neighbour is of that class."""

    x: float
    y: float
    name: str
    hit: bool


def points(
    name: str, title: str, under: str, found: Sequence[Point], named: Sequence[str], *, bare: bool = False
) -> Figure:
    """One panel; ``named`` are the classes in colour, at most eight. ``bare``: without title and legend."""
    looks = {label: style(number) for number, label in enumerate(named[:NAMED])}
    parts, top = [], 0.0
    if not bare:
        head, top = draw.heading(WIDTH, title, under)
        key, tall = draw.legend(0, top, [(draw.shorten(label, 150, 11), look) for label, look in looks.items()], WIDTH)
        parts, top = [head, key], top + tall + 4
    xs, ys = [point.x for point in found], [point.y for point in found]
    x, y = Scale(min(xs), max(xs), 10, WIDTH - 10), Scale(min(ys), max(ys), top + HEIGHT - 10, top + 10)
    for point in sorted(found, key=lambda entry: (entry.name in looks, entry.name)):
        at, here, look = x(point.x), y(point.y), looks.get(point.name)
        said = f"{point.name}: {'hit' if point.hit else 'miss'}"
        if look is not None:
            drawn = [draw.mark(at, here, look, 4.6)]
            if not point.hit:
                drawn.append(f'<circle class="k-miss" cx="{at:.1f}" cy="{here:.1f}" r="7.5" stroke-width="1.4"/>')
        elif point.hit:
            drawn = [f'<circle class="soft" cx="{at:.1f}" cy="{here:.1f}" r="2.4" fill-opacity="0.55"/>']
        else:
            d = f"M{at - 2.6:.1f} {here - 2.6:.1f}l5.2 5.2m0 -5.2l-5.2 5.2"
            drawn = [f'<path class="k-miss" d="{d}" stroke-width="1.2" stroke-opacity="0.75"/>']
        parts.append(draw.group(drawn, said))
    return Figure(name, f"{title}. {under}", WIDTH, top + HEIGHT, "".join(parts))

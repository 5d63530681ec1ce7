"""The map of an embedding: every point an image, misses crossed, some classes in colour and by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale
from nearkin.report.palette import Style, style

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
        parts.append(
            f'<g class="spot" transform="translate({at:.1f} {here:.1f})"><title>{escape(said)}</title>'
            f"{_spot(look, point.hit)}</g>"
        )
    return Figure(name, f"{title}. {under}", WIDTH, top + HEIGHT, "".join(parts))


def _spot(look: Style | None, hit: bool) -> str:
    """A mark about the origin, so that the page can make it larger where the map is small."""
    if look is not None:
        ring = "" if hit else '<circle class="k-miss" r="7.5" stroke-width="1.4"/>'
        return draw.mark(0, 0, look, 4.6) + ring
    if hit:
        return '<circle class="soft" r="2.4" fill-opacity="0.55"/>'
    return '<path class="k-miss" d="M-2.6 -2.6l5.2 5.2m0 -5.2l-5.2 5.2" stroke-width="1.2" stroke-opacity="0.75"/>'

"""Score against cost: what each loss takes and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale, around, log_ticks, ticks
from nearkin.report.palette import Style

WIDTH = 370.0
HEIGHT = 270.0
# Where values differ by more than this factor, they are shown by logarithm.
FAR = 6.0


@dataclass(frozen=True)
class Spot:
    label: str
    look: Style
    x: float
    y: float
    words: str


def scatter(name: str, title: str, under: str, spots: Sequence[Spot], x_name: str, y_name: str) -> Figure:
    """One panel; labels stand beside their marks where there is room, and in the tooltip always."""
    head, top = draw.heading(WIDTH, title, under)
    xs, ys = [spot.x for spot in spots], [spot.y for spot in spots]
    log = min(xs) > 0 and max(xs) / min(xs) > FAR
    low, high = (min(xs) / 1.25, max(xs) * 1.25) if log else around(min(xs), max(xs), 4)
    floor, ceiling = around(min(ys), max(ys), 4)
    left, right, bottom = 44.0, WIDTH - 14, top + HEIGHT - 36
    x, y = Scale(low, high, left + 8, right - 8, log), Scale(floor, ceiling, bottom - 6, top + 22)
    parts = [head, draw.text(left, top + 8, y_name, kind="soft", size=11)]
    for tick in ticks(floor, ceiling, 4):
        parts += [draw.line(left, y(tick), right, y(tick), "grid")]
        parts += [draw.text(left - 5, y(tick) + 4, f"{tick:g}", "end", "soft", size=11)]
    for tick in log_ticks(low, high) if log else ticks(low, high, 5):
        parts += [draw.line(x(tick), bottom, x(tick), bottom + 4)]
        parts += [draw.text(x(tick), bottom + 16, f"{tick:,g}", "middle", "soft", size=11)]
    parts += [draw.line(left, bottom, right, bottom)]
    parts += [draw.text((left + right) / 2, bottom + 31, x_name, "middle", "soft", size=11)]
    taken = [(x(spot.x) - 6, y(spot.y) - 6, x(spot.x) + 6, y(spot.y) + 6) for spot in spots]
    for spot in sorted(spots, key=lambda entry: (-entry.y, entry.label)):
        at, here = x(spot.x), y(spot.y)
        drawn = [draw.mark(at, here, spot.look, 5)]
        label = draw.shorten(spot.label, 150, 11)
        place = _room(at, here, draw.wide(label, 11), taken, left, right, top, bottom)
        if place is not None:
            drawn.append(draw.text(place[0], place[1], label, place[2], size=11))
        parts.append(draw.group(drawn, spot.words, "row"))
    return Figure(name, f"{title}. {y_name} against {x_name}", WIDTH, top + HEIGHT, "".join(parts))


Box = tuple[float, float, float, float]


def _room(
    x: float, y: float, long: float, taken: list[Box], left: float, right: float, top: float, bottom: float
) -> tuple[float, float, str] | None:
    """A place for a label near its mark that covers nothing else, if there is one."""
    places = [
        (x + dx, y + dy, anchor)
        for dy in (4.0, -5.0, 13.0, -12.0, 20.0)
        for dx, anchor in ((9.0, "start"), (-9.0, "end"))
    ]
    places += [(x, y - 10, "middle"), (x, y + 18, "middle")]
    for at, base, anchor in places:
        start = at if anchor == "start" else at - long if anchor == "end" else at - long / 2
        space = (start - 1, base - 9, start + long + 1, base + 2)
        inside = space[0] >= left and space[2] <= right + 10 and space[1] >= top + 8 and space[3] <= bottom
        if inside and not any(_cross(space, other) for other in taken):
            taken.append(space)
            return at, base, anchor
    return None


def _cross(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]

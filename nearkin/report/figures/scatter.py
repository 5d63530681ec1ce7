"""Score against cost: what each loss takes and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearkin.report.figures import draw, labels
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


def scatter(
    name: str,
    title: str,
    under: str,
    spots: Sequence[Spot],
    x_name: str,
    y_name: str,
    band: tuple[float, float] | None = None,
) -> Figure:
    """One panel; labels stand beside their marks, or at the end of a thin line where it is crowded.

    ``band``: bounds of y that are marked, and that the axis holds: small distances shall not look large.
    """
    head, top = draw.heading(WIDTH, title, under)
    tall = max(HEIGHT, 48 + 22.0 * len(spots))  # as tall as the bars of as many losses
    xs, ys = [spot.x for spot in spots], [spot.y for spot in spots]
    log = min(xs) > 0 and max(xs) / min(xs) > FAR
    low, high = (min(xs) / 1.25, max(xs) * 1.25) if log else around(min(xs), max(xs), 4)
    floor, ceiling = around(min(*ys, *(band or ys)), max(*ys, *(band or ys)), 4)
    left, right, bottom = 44.0, WIDTH - 14, top + tall - 36
    x, y = Scale(low, high, left + 8, right - 8, log), Scale(floor, ceiling, bottom - 6, top + 22)
    parts = [head, draw.text(left, top + 8, y_name, kind="soft", size=11)]
    if band is not None:
        parts.append(draw.band(left, y(band[1]), right - left, y(band[0]) - y(band[1])))
    for tick in ticks(floor, ceiling, 4):
        parts += [draw.line(left, y(tick), right, y(tick), "grid")]
        parts += [draw.text(left - 5, y(tick) + 4, f"{tick:g}", "end", "soft", size=11)]
    for tick in log_ticks(low, high) if log else ticks(low, high, 5):
        parts += [draw.line(x(tick), bottom, x(tick), bottom + 4)]
        parts += [draw.text(x(tick), bottom + 16, f"{tick:,g}", "middle", "soft", size=11)]
    parts += [draw.line(left, bottom, right, bottom)]
    parts += [draw.text((left + right) / 2, bottom + 31, x_name, "middle", "soft", size=11)]
    shown = sorted(spots, key=lambda entry: (-entry.y, entry.label))
    names = [draw.shorten(spot.label, 150, 11) for spot in shown]
    marks = [(x(spot.x), y(spot.y), draw.wide(label, 11)) for spot, label in zip(shown, names, strict=True)]
    found = labels.places(marks, (left, top + 8, right + 10, bottom))
    for spot, label, mark, place in zip(shown, names, marks, found, strict=True):
        drawn = [draw.mark(mark[0], mark[1], spot.look, 5)]
        if place is not None:
            end = labels.joint(mark, place, marks)
            if end is not None:
                drawn.insert(0, draw.line(*mark[:2], *end, width=0.8))
            drawn.append(draw.text(place[0], place[1], label, place[2], "ink free", size=11))
        parts.append(draw.group(drawn, spot.words, "row"))
    return Figure(name, f"{title}. {y_name} against {x_name}", WIDTH, top + tall, "".join(parts))

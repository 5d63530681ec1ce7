"""Lines over one axis: recall against size of embedding, training and validation curves, weights of pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale, apart, around, ticks
from nearkin.report.palette import Style

WIDTH = 370.0
NAMES = 128.0
"""Room for the names beside the lines."""
GUTTER = 26.0
"""Most room between the lines and their names."""


@dataclass(frozen=True)
class Line:
    """A series: points (x, y), and lines of single runs behind it. A hole in ``points`` breaks the line.

    ``soft``: one of many, drawn thin and grey behind the others.
    """

    label: str
    look: Style
    points: tuple[tuple[float, float], ...]
    behind: tuple[tuple[tuple[float, float], ...], ...] = ()
    soft: bool = False


@dataclass(frozen=True)
class Axis:
    """Name of an axis and its bounds and marks, where they are not to be found from the values.

    ``whole``: of things that are counted, so that there is nothing between two numbers to mark.
    """

    name: str
    marks: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False


def lines(
    name: str,
    title: str,
    under: str,
    series: Sequence[Line],
    x_axis: Axis,
    y_axis: Axis,
    *,
    height: float = 230.0,
    width: float = WIDTH,
    marks: bool = True,
    named: bool = True,
    chosen: Sequence[tuple[float, float, Style, str]] = (),
) -> Figure:
    """One panel. ``named``: labels stand at the ends of the lines. ``chosen``: points to mark, with what they are."""
    head, top = draw.heading(width, title, under)
    shown = [point for entry in series for part in (entry.points, *entry.behind) for point in part if _real(point)]
    xs, ys = [point[0] for point in shown] or [0.0], [point[1] for point in shown] or [0.0]
    low, high = around(min(ys), max(ys), 7)
    low, high = _or(y_axis.low, low), _or(y_axis.high, high)
    y_marks = ticks(low, high, 4)
    left = 12 + max((draw.wide(_said(mark), 11) for mark in y_marks), default=10)
    label = max((draw.wide(draw.shorten(entry.label, NAMES, 11), 11) for entry in series), default=0) if named else 0
    right, bottom = width - (label + 20 if named else 8), top + height - 36
    gutter = _gutter(series, Scale(low, high, bottom, top + 18), top + 18, bottom) if named else 0.0
    right -= gutter
    x = Scale(_or(x_axis.low, min(xs)), _or(x_axis.high, max(xs)), left + 6, right, x_axis.log)
    y = Scale(low, high, bottom, top + 18)
    parts = [head, draw.text(left, top + 8, y_axis.name, kind="soft", size=11)]
    for mark in y_marks:
        parts += [draw.line(left, y(mark), right + 4, y(mark), "grid")]
        parts += [draw.text(left - 5, y(mark) + 4, _said(mark), "end", "soft", size=11)]
    if low < 0 < high:
        parts.append(draw.line(left, y(0), right + 4, y(0), "axis"))
    for mark in _x_marks(x_axis, x, right - left):
        parts += [draw.line(x(mark), bottom, x(mark), bottom + 4)]
        parts += [draw.text(x(mark), bottom + 16, _said(mark), "middle", "soft", size=11)]
    parts += [draw.line(left, bottom, right + 4, bottom)]
    parts += [draw.text((left + right) / 2, bottom + 31, x_axis.name, "middle", "soft", size=11)]
    ends = _ends(series, y, top + 18, bottom) if named else [0.0] * len(series)
    for entry, end in sorted(zip(series, ends, strict=True), key=lambda pair: not pair[0].soft):
        parts.append(_series(entry, end, x, y, right, marks, named, gutter))
    for at, value, look, words in chosen:
        spot = f'<circle class="f-s{look.colour} mark" cx="{x(at):.1f}" cy="{y(value):.1f}" r="3.2"/>'
        parts.append(draw.group([spot], words))
    return Figure(name, f"{title}. {under}. {y_axis.name} against {x_axis.name}", width, top + height, "".join(parts))


def _series(entry: Line, end: float, x: Scale, y: Scale, right: float, marks: bool, named: bool, gutter: float) -> str:
    look = entry.look
    parts = []
    for run in entry.behind:
        parts += [
            f'<g opacity="0.35">{draw.path(_placed(part, x, y), f"k-s{look.colour}", 1, dashed=look.dashed)}</g>'
            for part in _parts(run)
        ]
    for part in _parts(entry.points):
        if len(part) > 1:
            kind, width = ("axis", 1.1) if entry.soft else (f"k-s{look.colour}", 1.8)
            parts.append(draw.path(_placed(part, x, y), kind, width, dashed=look.dashed and not entry.soft))
        if marks or len(part) == 1:
            parts += [draw.mark(*point, look, 3.6) for point in _placed(part, x, y)]
    last = [point for point in entry.points if _real(point)]
    if named and last:
        at, here = x(last[-1][0]), y(last[-1][1])
        begin, stop = at + 5, right + gutter + 6
        kind = "axis" if entry.soft or not gutter else f"k-s{look.colour}"
        parts.append(f'<path class="{kind}" d="M{begin:.1f} {here:.1f}L{stop:.1f} {end:.1f}" stroke-width="0.7"/>')
        parts += [] if entry.soft else [draw.mark(stop + 5, end, look, 3.2)]
        kind = "soft" if entry.soft else "ink"
        parts.append(draw.text(stop + 12, end + 4, draw.shorten(entry.label, NAMES, 11), kind=kind, size=11))
    words = ", ".join(f"{_said(at)}: {_number(value)}" for at, value in last) if len(last) <= 12 else ""
    return draw.group(parts, f"{entry.label}: {words}" if words else entry.label, "series")


def _gutter(series: Sequence[Line], y: Scale, top: float, bottom: float) -> float:
    """Room between lines and names, so that a name that stands higher or lower than its line can be followed to it."""
    wanted, placed = _wanted(series, y, bottom), _ends(series, y, top, bottom)
    moved = max((abs(end - here) for end, here in zip(placed, wanted, strict=True)), default=0.0)
    return min(GUTTER, moved / 2)


def _wanted(series: Sequence[Line], y: Scale, bottom: float) -> list[float]:
    ends = [[point for point in entry.points if _real(point)][-1:] for entry in series]
    return [y(end[0][1]) if end else bottom for end in ends]


def _ends(series: Sequence[Line], y: Scale, top: float, bottom: float) -> list[float]:
    return apart(_wanted(series, y, bottom), 13, top, bottom)


def _x_marks(axis: Axis, x: Scale, room: float) -> list[float]:
    """The marks of the x axis, thinned out until their names do not touch."""
    count = max(2, int(room / 55))
    found = list(axis.marks) or _ticks(axis, x, count)
    while not axis.marks and len(found) < 3 and count < 8:  # fewer say little about the scale
        count += 1
        found = _ticks(axis, x, count)
    while len(found) > 2 and any(
        x(second) - x(first) < draw.wide(_said(first) + _said(second), 11) / 2 + 6
        for first, second in itertools.pairwise(found)
    ):
        found = found[::2]
    return found


def _ticks(axis: Axis, x: Scale, count: int) -> list[float]:
    return [tick for tick in ticks(x.low, x.high, count) if not axis.whole or tick == round(tick)]


def _parts(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The unbroken pieces of a line."""
    found: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if _real(point):
            found[-1].append(point)
        elif found[-1]:
            found.append([])
    return [part for part in found if part]


def _placed(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> list[tuple[float, float]]:
    return [(x(at), y(value)) for at, value in points]


def _real(point: tuple[float, float]) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1])


def _or(given: float | None, found: float) -> float:
    return found if given is None else given


def _said(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3g}"

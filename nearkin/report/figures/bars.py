"""Bars with intervals, best at the top; a run that is missing leaves a hole that says so."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale, ticks
from nearkin.report.palette import Style
from nearkin.tournament.words import between, percent

WIDTH = 370.0
ROW = 22.0
LINE = 13.0
BESIDE = 37.0
"""From the axis to the words on a hole."""
MOST = 6
"""Lines of words on a hole; the table has all of them."""
VALIDATED = ("fixed_validation", "cross_validation")


@dataclass(frozen=True)
class Bar:
    """A loss: its mean as a share of 1 with bounds (not numbers where there are none), letters of its groups.

    ``published``: what others report for the same, with protocols; ``hole``: why there is no mean; ``paint``: class of a
    colour that is not that of the loss.
    """

    label: str
    look: Style
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    letters: str = ""
    published: tuple[tuple[float, str], ...] = ()
    hole: str = ""
    paint: str = ""

    @property
    def filled(self) -> str:
        """The class of its colour."""
        return self.paint or f"f-s{self.look.colour}"


def bars(name: str, title: str, under: str, entries: Sequence[Bar]) -> Figure:
    """One panel; bars begin at 0, so that their lengths can be compared."""
    values = [
        x
        for bar in entries
        for x in (bar.value, min(bar.high, 1.0), *(one for one, _ in bar.published))
        if math.isfinite(x)
    ]
    top = 100 * max(values, default=1.0)
    head, start = draw.heading(WIDTH, title, under)
    left = min(150.0, 10 + draw.wide(max((bar.label for bar in entries), key=len, default="")))
    beside = WIDTH - 44 - max(draw.wide(bar.letters, 11) for bar in entries)
    x = Scale(0, top, left, beside - 12)
    reasons = [_reason(bar, left) for bar in entries]
    talls = [max(ROW, LINE * len(reason) + 9) for reason in reasons]
    bottom = start + sum(talls) + 2
    parts = [head]
    for tick in ticks(0, top, 5):
        parts += [
            draw.line(x(tick), start, x(tick), bottom, "grid"),
            draw.text(x(tick), bottom + 14, f"{tick:g}", "middle", "soft", size=11),
        ]
    y = start
    for bar, reason, tall in zip(entries, reasons, talls, strict=True):
        parts.append(_hole(bar, reason, y + ROW / 2, left) if reason else _row(bar, y + ROW / 2, left, beside, x))
        y += tall
    parts.append(draw.line(left, start, left, bottom))
    return Figure(name, f"{title}. {under}", WIDTH, bottom + 20, "".join(parts))


def _reason(bar: Bar, left: float) -> list[str]:
    """Why there is no bar, in lines that fit beside the name; empty where there is one."""
    if math.isfinite(bar.value):
        return []
    room = int((WIDTH - left - BESIDE) / (draw.LETTER * 11))
    return textwrap.wrap("hole: " + bar.hole, max(room, 12), max_lines=MOST, placeholder=" …")


def _label(bar: Bar, middle: float, left: float) -> str:
    return draw.text(left - 7, middle + 4, draw.shorten(bar.label, left - 7), "end")


def _hole(bar: Bar, reason: Sequence[str], middle: float, left: float) -> str:
    box = f'<rect class="axis" x="{left + 4:.1f}" y="{middle - 6:.1f}" width="26" height="12" stroke-dasharray="3 2"/>'
    lines = [
        draw.text(left + BESIDE, middle + 4 + LINE * number, words, "start", "warn", size=11)
        for number, words in enumerate(reason)
    ]
    return draw.group([_label(bar, middle, left), box, *lines], f"{bar.label}: {bar.hole}", "row")


def _row(bar: Bar, middle: float, left: float, beside: float, x: Scale) -> str:
    said = f"{bar.label}: {percent(bar.value)} %"
    parts = [
        _label(bar, middle, left),
        draw.box(left, middle - 7, x(100 * bar.value) - left, 14, bar.filled, opacity=0.75),
    ]
    if math.isfinite(bar.low):
        said += f" {between(bar.low, bar.high)}"
        low, high = x(100 * max(bar.low, 0)), x(100 * min(bar.high, 1))
        parts += [draw.line(low, middle, high, middle, "pen", 1.5)]
        parts += [draw.line(end, middle - 4, end, middle + 4, "pen", 1.5) for end in (low, high)]
    for value, protocol in bar.published:
        at, kind = x(100 * value), "ink mark" if protocol in VALIDATED else "open pen"
        parts.append(f'<path class="{kind}" d="M{at:.1f} {middle - 6:.1f}l5 6l-5 6l-5 -6Z" stroke-width="1.5"/>')
    if bar.published:
        said += "; published: " + ", ".join(f"{percent(value)} ({protocol})" for value, protocol in bar.published)
    parts.append(draw.text(beside + 36, middle + 4, percent(bar.value), "end"))
    if bar.letters:
        parts.append(draw.text(beside + 42, middle + 4, bar.letters, kind="soft", size=11))
    return draw.group(parts, said, "row")

"""The strokes that figures are made of, and the sheet they stand on."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

from nearkin.report import palette
from nearkin.report.palette import Style

FONT = 12
MARGIN = 12
WIDE, NARROW = 900.0, 370.0
# An average letter is this much of the font's size wide, on the safe side: readers have different fonts.
LETTER = 0.6
BOLD = 0.68


@dataclass(frozen=True)
class Figure:
    """A drawing: ``name`` of its file, ``words`` that say what it shows, ``body`` on a sheet of that size.

    ``narrow``: what is drawn instead on a telephone, onto which this one is too wide to be shrunk.
    """

    name: str
    words: str
    width: float
    height: float
    body: str
    narrow: Figure | None = None

    def inline(self) -> str:
        """For the page, whose style it takes on."""
        return (
            f'<svg class="nearkin-figure" viewBox="0 0 {self.width:.0f} {self.height:.0f}" width="{self.width:.0f}" '
            f'height="{self.height:.0f}" role="img" aria-label="{escape(self.words)}">{self.body}</svg>'
        )

    def file(self, style: str | None = None) -> str:
        """As a file of its own, on paper with a margin."""
        width, height = self.width + 2 * MARGIN, self.height + 2 * MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="nearkin-figure" '
            f'viewBox="{-MARGIN} {-MARGIN} {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
            f'font-family="system-ui, sans-serif" font-size="{FONT}" role="img"><title>{escape(self.words)}</title>'
            f"{palette.standalone() if style is None else style}"
            f'<rect class="paper" x="{-MARGIN}" y="{-MARGIN}" width="{width:.0f}" height="{height:.0f}"/>{self.body}</svg>\n'
        )


def wide(text: str, size: float = FONT) -> float:
    """About how wide a text is."""
    return LETTER * size * len(text)


def shorten(text: str, room: float, size: float = FONT) -> str:
    """The text, cut with an ellipsis where it is wider than the room.

    >>> shorten("multi_similarity", 60)
    'multi_s…'
    """
    letters = max(2, int(room / (LETTER * size)))
    return text if len(text) <= letters else text[: letters - 1] + "…"


def text(
    x: float, y: float, words: str, anchor: str = "start", kind: str = "ink", *, size: float = FONT, bold: bool = False
) -> str:
    """Words at a place; ``kind`` is the class of their colour."""
    extra = "" if anchor == "start" else f' text-anchor="{anchor}"'
    extra += "" if size == FONT else f' font-size="{size:g}"'
    extra += ' font-weight="600"' if bold else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{extra}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis", width: float = 1) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke-width="{width:g}"/>'


def path(points: Iterable[tuple[float, float]], kind: str, width: float = 1.8, *, dashed: bool = False) -> str:
    """A line through points."""
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    extra = ' stroke-dasharray="5 3"' if dashed else ""
    return (
        f'<path class="{kind}" d="M{steps}" stroke-width="{width:g}" stroke-linejoin="round" '
        f'stroke-linecap="round"{extra}/>'
    )


def area(points: Iterable[tuple[float, float]], kind: str, opacity: float = 0.2) -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" d="M{steps}Z" fill-opacity="{opacity:g}"/>'


def box(x: float, y: float, width: float, height: float, kind: str, *, opacity: float = 1) -> str:
    extra = "" if opacity == 1 else f' fill-opacity="{opacity:g}"'
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" '
        f'rx="2"{extra}/>'
    )


def band(x: float, y: float, width: float, height: float) -> str:
    """A part of the paper that is marked lightly, behind what is drawn on it."""
    return box(x, y, width, height, "band")


def group(parts: Iterable[str], title: str = "", kind: str = "") -> str:
    """Parts that belong together, with a text that shows when the mouse rests on them."""
    named = f' class="{kind}"' if kind else ""
    return f"<g{named}>{f'<title>{escape(title)}</title>' if title else ''}{''.join(parts)}</g>"


def mark(x: float, y: float, look: Style, size: float = 4) -> str:
    """The mark of a series."""
    fill, stroke = f"f-s{look.colour} mark", f"k-s{look.colour}"
    s = size
    if look.mark in ("plus", "cross"):
        d = f"M{x - s:.1f} {y:.1f}h{2 * s:g}M{x:.1f} {y - s:.1f}v{2 * s:g}"
        if look.mark == "cross":
            r = 0.8 * s
            d = f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}M{x - r:.1f} {y + r:.1f}l{2 * r:.1f} {-2 * r:.1f}"
        return f'<path class="{stroke}" d="{d}" stroke-width="2.2" stroke-linecap="round"/>'
    if look.mark == "ring":
        return f'<circle class="open {stroke}" cx="{x:.1f}" cy="{y:.1f}" r="{0.85 * s:g}" stroke-width="2.2"/>'
    if look.mark == "circle":
        return f'<circle class="{fill}" cx="{x:.1f}" cy="{y:.1f}" r="{s:g}"/>'
    r = 0.88 * s
    corners = {
        "square": ((-r, -r), (r, -r), (r, r), (-r, r)),
        "triangle": ((0, -1.15 * s), (1.1 * s, 0.8 * s), (-1.1 * s, 0.8 * s)),
        "wedge": ((0, 1.15 * s), (1.1 * s, -0.8 * s), (-1.1 * s, -0.8 * s)),
        "diamond": ((0, -1.25 * s), (1.25 * s, 0), (0, 1.25 * s), (-1.25 * s, 0)),
    }[look.mark]
    steps = "L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in corners)
    return f'<path class="{fill}" d="M{steps}Z"/>'


def heading(width: float, title: str, under: str = "") -> tuple[str, float]:
    """A title, soft lines under it, and where the drawing may begin. Nothing is cut: a protocol stands whole."""
    parts, y = [], 13.0
    for words, size, bold in ((title, FONT, True), (under, 11, False)):
        letter = (BOLD if bold else LETTER) * size
        for row in textwrap.wrap(words, max(12, int(width / letter))):
            parts.append(text(0, y, row, kind="ink" if bold else "soft", size=size, bold=bold))
            y += 15.0
    return "".join(parts), y - 5.0


def legend(x: float, y: float, entries: Sequence[tuple[str, Style]], room: float) -> tuple[str, float]:
    """Marks with names in rows, and the height they take."""
    parts, at, row = [], x, 0
    for name, look in entries:
        long = 16 + wide(name, 11) + 12
        if at > x and at + long > x + room:
            at, row = x, row + 1
        parts += [
            mark(at + 5, y + 16 * row + 6, look),
            text(at + 14, y + 16 * row + 10, name, "start", "soft", size=11),
        ]
        at += long
    return "".join(parts), 16.0 * (row + 1) if entries else 0.0


def twice(make: Callable[[float], Figure]) -> Figure:
    """A figure that has a card to itself: as wide as the card, and a narrow one for a telephone."""
    return replace(make(WIDE), narrow=make(NARROW))


def sheet(name: str, words: str, figures: Sequence[Figure], columns: int = 4, gap: float = 20.0) -> Figure:
    """Small figures of one kind on one sheet, row by row."""
    columns = min(columns, len(figures))
    widest = max(figure.width for figure in figures)
    parts, y = [text(gap, 20, words, bold=True)], 34.0
    for start in range(0, len(figures), columns):
        row = figures[start : start + columns]
        for place, figure in enumerate(row):
            parts.append(f'<g transform="translate({gap + place * (widest + gap):.0f} {y:.0f})">{figure.body}</g>')
        y += max(figure.height for figure in row) + gap
    width = max(gap + columns * (widest + gap), wide(words) + 2 * gap)
    return Figure(name, words, width, y, "".join(parts))

"""Two figures as SVG text: mean ranks with the critical difference, and mean scores with their intervals.

A figure takes the colour of the text around it where it is put into a page; as a file of its own (``standalone``) it is dark
on light or light on dark as the reader's system asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from nearkin.tournament.verdict import Verdict
from nearkin.tournament.words import between, chance, count, percent

FONT = 13
CHARACTER = 0.6 * FONT  # the width of an average letter, on the safe side
ROW = 22
PAD = 16
MARK = "#3b82c4"  # readable on white and on black

STYLE = (
    "<style>.nearkin-figure{color:#1b1b1b}@media (prefers-color-scheme:dark){.nearkin-figure{color:#e6e6e6}}</style>"
)


def critical_difference_svg(verdict: Verdict, standalone: bool = True) -> str:
    """Mean ranks on a line, best at the left; a bar joins losses that cannot be told apart; the difference is printed."""
    test = verdict.friedman
    if test is None:
        raise ValueError(
            "a critical-difference diagram needs at least 2 experiments, got 1; draw one experiment with intervals_svg."
        )
    names = [f"{entry.label}  {entry.mean:.2f}" for entry in verdict.standings]
    means = [entry.mean for entry in verdict.standings]
    k = len(means)
    half = (k + 1) // 2
    margin = [PAD + 14 + CHARACTER * max(len(name) for name in side) for side in (names[:half], names[half:])]
    span = max(360.0, 44.0 * (k - 1))
    left, right = margin[0], margin[0] + span
    bars = _levels([group for group in _members(verdict) if len(group) > 1])
    title = f"Mean rank by {verdict.metric} over {count(test.experiments, 'experiment')}, {verdict.protocol}"
    width = max(right + margin[1], 2 * PAD + CHARACTER * len(title))
    axis = 96.0
    depth = 1 + max((level for level, _ in bars), default=-1)
    start = axis + 20 + 10 * depth

    def x(value: float) -> float:
        return left + span * (value - 1) / (k - 1)

    parts = [_text(PAD, 22, title, weight="bold")]
    if math.isfinite(test.difference):
        wide = span * test.difference / (k - 1)
        shown = f"critical difference {test.difference:.2f}"
        if wide <= span:
            parts += [_line(left, 50, left + wide, 50, 2)]
            parts += [_line(end, 45, end, 55, 2) for end in (left, left + wide)]
            parts += [_text(left + wide + 8, 54, shown)]
        else:
            parts += [_text(left, 54, f"{shown}: more than the whole line")]
    else:
        parts += [_text(left, 54, f"Wilcoxon signed-rank test, {chance(test.p)}")]
    parts += [_line(left, axis, right, axis, 1.5)]
    for tick in range(1, k + 1):
        parts += [_line(x(tick), axis - 6, x(tick), axis, 1), _text(x(tick), axis - 11, str(tick), "middle")]
    for place, mean in enumerate(means):
        on_left = place < half
        row = place if on_left else k - 1 - place
        y = start + ROW * row + ROW / 2
        edge = left - 8 if on_left else right + 8
        parts += [
            f'<path d="M{x(mean):.1f} {axis:.1f}V{y:.1f}H{edge:.1f}" fill="none" stroke="currentColor" '
            f'stroke-opacity="0.55"/>',
            _text(edge + (-6 if on_left else 6), y + 4.5, names[place], "end" if on_left else "start"),
        ]
    for level, group in bars:
        y = axis + 10 + 10 * level
        parts += [_line(x(means[group[0]]) - 4, y, x(means[group[-1]]) + 4, y, 4.5, MARK)]
    height = start + ROW * half + PAD
    words = f"{title}. " + verdict.sentence
    return _figure(width, height, parts, words, standalone)


def intervals_svg(verdict: Verdict, standalone: bool = True) -> str:
    """Mean score and interval of each loss, best at the top; a bracket joins losses that cannot be told apart."""
    if len(verdict.ranked) != 1:
        raise ValueError(
            f"a figure of intervals shows one experiment, got {len(verdict.ranked)}; draw several with "
            f"critical_difference_svg."
        )
    table, entries = verdict.ranked[0], verdict.standings
    lows = [entry.low if math.isfinite(entry.low) else entry.score for entry in entries]
    highs = [entry.high if math.isfinite(entry.high) else entry.score for entry in entries]
    values = [f"{percent(entry.score)}  {between(entry.low, entry.high)}".removesuffix("  -") for entry in entries]
    ticks = _ticks(100 * min(lows), 100 * max(highs))
    left = PAD + 12 + CHARACTER * max(len(entry.label) for entry in entries)
    span = 380.0
    right = left + span
    brackets = [group for group in _members(verdict) if len(group) > 1]
    beside = right + 18
    column = beside + CHARACTER * max(map(len, values)) + 14
    title = f"{verdict.metric} in percent, {table.name}"
    foot = "Joined by dots: cannot be told apart. Go by the dots: intervals may overlap where differences are sure."
    foot = foot if brackets else ""
    width = max(column + 14 * len(brackets) + PAD, 2 * PAD + CHARACTER * max(len(title), len(foot)))
    top = 44.0
    bottom = top + ROW * len(entries) + 6

    def x(value: float) -> float:
        return left + span * (value - ticks[0]) / (ticks[-1] - ticks[0])

    def y(place: int) -> float:
        return top + ROW * place + ROW / 2

    parts = [_text(PAD, 22, title, weight="bold"), _line(left, bottom, right, bottom, 1.5)]
    for tick in ticks:
        parts += [
            f'<path d="M{x(tick):.1f} {top:.1f}V{bottom:.1f}" stroke="currentColor" stroke-opacity="0.15"/>',
            _text(x(tick), bottom + 17, f"{tick:g}", "middle"),
        ]
    for place, entry in enumerate(entries):
        middle = y(place)
        parts += [_text(left - 12, middle + 4.5, entry.label, "end"), _text(beside, middle + 4.5, values[place])]
        if math.isfinite(entry.low):
            parts += [_line(x(100 * entry.low), middle, x(100 * entry.high), middle, 2)]
            parts += [_line(x(100 * end), middle - 4, x(100 * end), middle + 4, 1.5) for end in (entry.low, entry.high)]
        parts += [f'<circle cx="{x(100 * entry.score):.1f}" cy="{middle:.1f}" r="4.5" fill="{MARK}"/>']
    for number, group in enumerate(brackets):
        at = column + 14 * number
        parts += [_line(at, y(group[0]), at, y(group[-1]), 2, MARK)]
        parts += [f'<circle cx="{at:.1f}" cy="{y(place):.1f}" r="3.5" fill="{MARK}"/>' for place in group]
    if foot:
        parts += [_text(PAD, bottom + 40, foot, opacity=0.75)]
    height = bottom + 26 + (22 if foot else 0) + PAD / 2
    return _figure(width, height, parts, f"{title}. {verdict.sentence}", standalone)


def svg(verdict: Verdict, standalone: bool = True) -> str:
    """The figure that fits: mean ranks for several experiments, intervals for one."""
    return (intervals_svg if verdict.friedman is None else critical_difference_svg)(verdict, standalone)


def _members(verdict: Verdict) -> list[list[int]]:
    place = {entry.label: number for number, entry in enumerate(verdict.standings)}
    return [sorted(place[label] for label in group) for group in verdict.groups]


def _levels(found: Sequence[Sequence[int]]) -> list[tuple[int, Sequence[int]]]:
    """A height for each bar such that bars of one height neither cross nor touch."""
    ends: list[int] = []
    levels = []
    for group in found:
        level = next((number for number, end in enumerate(ends) if end < group[0]), len(ends))
        if level == len(ends):
            ends.append(group[-1])
        else:
            ends[level] = group[-1]
        levels.append((level, group))
    return levels


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers that hold both ends, five or so.

    >>> _ticks(57.3, 62.9)
    [57.0, 58.0, 59.0, 60.0, 61.0, 62.0, 63.0]
    """
    gap = max(high - low, 0.1) / 5
    scale = 10.0 ** math.floor(math.log10(gap))
    step = next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= gap * 0.8)
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    return [round(step * number, 6) for number in range(first, last + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, width: float, colour: str = "currentColor") -> str:
    return (
        f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width:g}" '
        f'stroke-linecap="round"/>'
    )


def _text(x: float, y: float, words: str, anchor: str = "start", weight: str = "normal", opacity: float = 1.0) -> str:
    extra = "" if weight == "normal" else f' font-weight="{weight}"'
    extra += "" if opacity == 1.0 else f' fill-opacity="{opacity:g}"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" xml:space="preserve"{extra}>'
        f"{escape(words)}</text>"
    )


def _figure(width: float, height: float, parts: Sequence[str], words: str, standalone: bool) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="nearkin-figure" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="system-ui, sans-serif" font-size="{FONT}" role="img">'
        f"<title>{escape(words)}</title>{STYLE if standalone else ''}\n" + "\n".join(parts) + "\n</svg>\n"
    )

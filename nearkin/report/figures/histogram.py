"""How alike pairs of one class and pairs of two classes are, and how much the two overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale, around, ticks

WIDTH = 270.0
HEIGHT = 132.0
LEFT = 52.0
DISTANCES = (0.0, 0.5, 1.0, 1.5, 2.0)
# A range of cosines below this has marks of its own.
NARROW = 0.3
# Within so few steps of the histogram the overlap says more about the steps than about the pairs.
LEAST = 3


def overlap(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The share that two histograms have in common: 0 where they are apart, 1 where they are equal.

    >>> overlap([0, 2, 2], [2, 2, 0])
    0.5
    """
    one, other = _shares(positive), _shares(negative)
    return sum(min(a, b) for a, b in zip(one, other, strict=True))


def coarse(positive: Sequence[float], negative: Sequence[float]) -> bool:
    """Whether the steps are too coarse for the overlap to be known."""
    first, last = _used(_shares(positive), _shares(negative))
    return last - first < LEAST


def histogram(
    name: str,
    title: str,
    edges: Sequence[float],
    positive: Sequence[float],
    negative: Sequence[float],
    under: str = "",
) -> Figure:
    """One panel: shares of pairs over their cosine, and the distance on the unit sphere that belongs to it.

    ``under``: what to say below the title instead of the overlap of these pairs.
    """
    one, other = _shares(positive), _shares(negative)
    first, last = _used(one, other)
    low, high = edges[first], edges[last + 1]
    if coarse(positive, negative):
        under = f"overlap not known: all pairs lie between {low:g} and {high:g}, and the steps are no finer"
    under = under or f"overlap {100 * overlap(positive, negative):.1f} %"
    head, top = draw.heading(WIDTH, title, under)
    narrow = high - low < NARROW - 1e-9
    low, high = _bounds(low, high, narrow)
    bottom = top + HEIGHT - 34
    x, y = Scale(low, high, LEFT, WIDTH - 8), Scale(0, max(*one, *other, 1e-9), bottom, top + 4)
    parts = [head]
    for values, kind, named in ((other, "miss", "two classes"), (one, "hit", "one class")):
        steps = _steps(edges, values, low, high)
        outline = [(x(at), y(value)) for at, value in steps]
        shape = [(outline[0][0], bottom), *outline, (outline[-1][0], bottom)]
        parts.append(
            draw.group(
                [draw.area(shape, f"f-{kind}"), draw.path(outline, f"k-{kind}", 1.5, dashed=kind == "miss")],
                f"pairs of {named}",
            )
        )
    both = _steps(edges, [min(a, b) for a, b in zip(one, other, strict=True)], low, high)
    shape = [(x(both[0][0]), bottom), *((x(at), y(value)) for at, value in both), (x(both[-1][0]), bottom)]
    parts.append(draw.group([draw.area(shape, "soft", 0.55)], under))
    parts.append(draw.line(LEFT, bottom, WIDTH - 8, bottom))
    parts += [draw.text(0, bottom + 14, "cosine", kind="soft", size=10)]
    parts += [draw.text(0, bottom + 28, "distance", kind="soft", size=10)]
    for at, said in _cosines(low, high, narrow):
        parts += [draw.line(x(at), bottom, x(at), bottom + 3)]
        parts += [draw.text(x(at), bottom + 14, said, _anchor(x(at)), "soft", size=10)]
    for at, said in _distances(low, high, x, narrow):
        parts.append(draw.text(x(at), bottom + 28, said, _anchor(x(at)), "soft", size=10))
    return Figure(name, f"{title}: {under}", WIDTH, top + HEIGHT, "".join(parts))


def _bounds(low: float, high: float, narrow: bool) -> tuple[float, float]:
    """Round bounds: tenths by two, or closer where all pairs are much alike."""
    if not narrow:
        return math.floor(low * 5 + 1e-9) / 5, math.ceil(high * 5 - 1e-9) / 5
    low, high = around(low, high, 5)
    return max(low, -1.0), min(high, 1.0)


def _cosines(low: float, high: float, narrow: bool) -> list[tuple[float, str]]:
    """Marks of the axis with what they say."""
    if narrow:
        marks = next((some for count in (4, 5, 6) if len(some := ticks(low, high, count)) > 2), [low, high])
        found = [(at, f"{at:.6g}") for at in marks]
        room = (WIDTH - 8 - LEFT) / max(len(found), 1)
        return found[:: 1 if room > max(draw.wide(said, 10) for _, said in found) else 2]
    count = round((high - low) / 0.2)
    marks = [low + 0.2 * number for number in range(0, count + 1, 1 if count <= 5 else 2)]
    return [(at, f"{at:.1f}".replace("-0.0", "0.0")) for at in marks]


def _distances(low: float, high: float, x: Scale, narrow: bool) -> list[tuple[float, str]]:
    """Cosines of round distances with what they say; those too close to write are left out."""
    nearest, farthest = (math.sqrt(max(2 - 2 * cosine, 0.0)) for cosine in (high, low))
    round_ones = ticks(nearest, farthest, 4) if narrow else DISTANCES
    found: list[tuple[float, str]] = []
    end = 0.0
    for distance in sorted(round_ones, reverse=True):  # on the left there is room for each, on the right not
        at, said = 1 - distance**2 / 2, f"{distance:.4g}"
        inside = low - 1e-9 <= at <= high + 1e-9
        # A word at an edge stands whole on the inner side of its mark.
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[_anchor(x(at))]
        long = draw.wide(said, 10)
        start = x(at) - before * long
        if inside and (not found or start > end + 6):
            found.append((at, said))
            end = start + long
    return found


def _anchor(x: float) -> str:
    return "end" if x > WIDTH - 14 else "start" if x < LEFT + 14 else "middle"


def _used(one: Sequence[float], other: Sequence[float]) -> tuple[int, int]:
    """The first and the last step that hold anything to be seen."""
    used = [number for number, (a, b) in enumerate(zip(one, other, strict=True)) if a + b > 1e-4]
    return (used[0], used[-1]) if used else (0, len(one) - 1)


def _shares(counts: Sequence[float]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


def _steps(edges: Sequence[float], values: Sequence[float], low: float, high: float) -> list[tuple[float, float]]:
    found = []
    for number, value in enumerate(values):
        start, end = edges[number], edges[number + 1]
        if end > low + 1e-9 and start < high - 1e-9:
            found += [(max(start, low), value), (min(end, high), value)]
    return found

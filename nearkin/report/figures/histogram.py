"""How alike pairs of one class and pairs of two classes are, and how much the two overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nearkin.report.figures import draw
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.scale import Scale

WIDTH = 270.0
HEIGHT = 132.0
LEFT = 52.0
DISTANCES = (0.0, 0.5, 1.0, 1.5, 2.0)


def overlap(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The share that two histograms have in common: 0 where they are apart, 1 where they are equal.

    >>> overlap([0, 2, 2], [2, 2, 0])
    0.5
    """
    one, other = _shares(positive), _shares(negative)
    return sum(min(a, b) for a, b in zip(one, other, strict=True))


def histogram(
    name: str, title: str, edges: Sequence[float], positive: Sequence[float], negative: Sequence[float]
) -> Figure:
    """One panel: shares of pairs over their cosine, and the distance on the unit sphere that belongs to it."""
    one, other = _shares(positive), _shares(negative)
    under = f"overlap {100 * overlap(positive, negative):.1f} %"
    head, top = draw.heading(WIDTH, title, under)
    used = [number for number, (a, b) in enumerate(zip(one, other, strict=True)) if a + b > 1e-4] or [0, len(one) - 1]
    low, high = edges[used[0]], edges[used[-1] + 1]
    low, high = math.floor(low * 5) / 5, math.ceil(high * 5 - 1e-9) / 5
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
    count = round((high - low) / 0.2)
    every = 1 if count <= 5 else 2
    for number in range(0, count + 1, every):
        at = low + 0.2 * number
        parts += [draw.line(x(at), bottom, x(at), bottom + 3)]
        parts += [draw.text(x(at), bottom + 14, f"{at:.1f}".replace("-0.0", "0.0"), _anchor(x(at)), "soft", size=10)]
    for distance in DISTANCES:
        at = 1 - distance**2 / 2
        if low - 1e-9 <= at <= high + 1e-9:
            parts.append(draw.text(x(at), bottom + 28, f"{distance:g}", _anchor(x(at)), "soft", size=10))
    return Figure(name, f"{title}: {under}", WIDTH, top + HEIGHT, "".join(parts))


def _anchor(x: float) -> str:
    return "end" if x > WIDTH - 14 else "middle"


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

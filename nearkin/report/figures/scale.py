"""From values to places on the paper, and round numbers to name them by."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Maps ``low`` to ``start`` and ``high`` to ``end``, evenly or by logarithm.

    >>> Scale(0, 10, 100, 200)(2.5), Scale(1, 100, 0, 50, log=True)(10)
    (125.0, 25.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = (at - low) / (high - low) if high != low else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers within the bounds, about ``count`` of them.

    >>> ticks(0, 87), ticks(0.613, 0.648, 4)
    ([0.0, 20.0, 40.0, 60.0, 80.0], [0.62, 0.63, 0.64])
    """
    if not high > low:
        return [low]
    step = _step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def around(low: float, high: float, count: int = 5) -> tuple[float, float]:
    """Round bounds that hold both values.

    >>> around(61.3, 64.8)
    (61.0, 65.0)
    """
    if not high > low:
        pad = max(abs(low) * 0.05, 0.5)
        low, high = low - pad, high + pad
    step = _step(high - low, count)
    return round(math.floor(low / step + 1e-9) * step, 10), round(math.ceil(high / step - 1e-9) * step, 10)


def _step(span: float, count: int) -> float:
    rough = span / max(count, 1)
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= rough * 0.999)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten within the bounds; powers alone where these are many.

    >>> log_ticks(8, 120)
    [10.0, 20.0, 50.0, 100.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in powers for factor in factors]
        found = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) <= 6:
            break
    return found


def apart(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near as can be to those wanted, in the same order, at least ``gap`` apart where there is room.

    >>> apart([10, 11, 30], 5, 0, 100)
    [8.0, 13.0, 30.0]
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    # Neighbours that would overlap form a cluster, centred on the mean of what its members want.
    clusters: list[tuple[float, list[int]]] = []
    for place in order:
        centre, members = float(wanted[place]), [place]
        while clusters and _start(centre, len(members), gap, low, high) < _end(*clusters[-1], gap, low, high) + gap:
            before = clusters.pop()
            members = [*before[1], *members]
            centre = sum(wanted[one] for one in members) / len(members)
        clusters.append((centre, members))
    found = [0.0] * len(wanted)
    for centre, members in clusters:
        start = _start(centre, len(members), gap, low, high)
        for number, place in enumerate(members):
            found[place] = start + number * gap
    return found


def _start(centre: float, size: int, gap: float, low: float, high: float) -> float:
    long = (size - 1) * gap
    return max(low, min(centre - long / 2, high - long))


def _end(centre: float, members: list[int], gap: float, low: float, high: float) -> float:
    return _start(centre, len(members), gap, low, high) + (len(members) - 1) * gap

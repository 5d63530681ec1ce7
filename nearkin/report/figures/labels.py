"""Places for names beside marks, where they cover neither marks nor each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

Box = tuple[float, float, float, float]
Place = tuple[float, float, str]
"""Where a text stands, and which end of it: start, middle or end."""
Mark = tuple[float, float, float]
"""Where a mark stands, and how long its name is."""
HALF = 6.0
"""Half the side of the square that a mark takes."""
# A name that is farther from its mark than this is joined to it by a line.
NEAR = 22.0


def places(marks: Sequence[Mark], inside: Box) -> list[Place | None]:
    """For each mark (x, y, length of its name) the place of the name within a box; None where there is no room.

    Marks with the fewest places to choose from are served first. A name stands closer to its mark than to any other, or
    ``joint`` says that a line is needed, so that nobody takes it for the name of another.
    """
    taken = [(x - HALF, y - HALF, x + HALF, y + HALF) for x, y, _ in marks]
    wanted = [_candidates(x, y, long) for x, y, long in marks]
    free = [
        sum(_fits(mark, place, taken, inside) for place in near[:CLOSE])
        for mark, near in zip(marks, wanted, strict=True)
    ]
    found: list[Place | None] = [None] * len(marks)
    for number in sorted(range(len(marks)), key=lambda one: (free[one], marks[one][1], one)):
        mark = marks[number]
        fitting = [one for one in wanted[number] if _fits(mark, one, taken, inside)]
        others = [other for one, other in enumerate(marks) if one != number]
        place = next((one for one in fitting if _clear(mark, one, others)), fitting[0] if fitting else None)
        if place is not None:
            taken.append(_space(place, mark[2]))
            found[number] = place
    return found


def joint(mark: Mark, place: Place, marks: Sequence[Mark]) -> tuple[float, float] | None:
    """Where a line from the mark should end at its name; None where nobody needs one."""
    if far(mark, place):
        return place[0], place[1] - 4
    if _clear(mark, place, [other for other in marks if other != mark]):
        return None
    left, top, right, bottom = _space(place, mark[2])
    return min(max(mark[0], left + 3), right - 3), min(max(mark[1], top), bottom)


def far(mark: Mark, place: Place) -> bool:
    """Whether a name stands so far from its mark that they must be joined."""
    return place[2] != "middle" and math.hypot(place[0] - mark[0], place[1] - 4 - mark[1]) > NEAR


# The first so many candidates are close to the mark.
CLOSE = 10


def _candidates(x: float, y: float, long: float) -> list[Place]:
    """Beside the mark, above and below it, then around it at growing distances."""
    made = [
        (x + dx, y + dy, anchor)
        for dy in (4.0, -5.0, 13.0, -12.0, 20.0)
        for dx, anchor in ((9.0, "start"), (-9.0, "end"))
    ]
    parts = (0.0, 0.15, -0.15, 0.3, -0.3, 0.45, -0.45)
    made += [(x + part * long, y + dy, "middle") for dy in (-10.0, 18.0) for part in parts]
    for away in (26.0, 36.0, 48.0, 62.0, 78.0):
        for turn in (0, 1, -1, 2, -2, 3, -3):
            angle = turn * math.pi / 7
            for way, anchor in ((1, "start"), (-1, "end")):
                made.append((x + way * away * math.cos(angle), y + 4 + away * math.sin(angle), anchor))
    return made


def _space(place: Place, long: float) -> Box:
    at, base, anchor = place
    start = at - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
    return start - 1, base - 9, start + long + 1, base + 2


def _fits(mark: Mark, place: Place, taken: Sequence[Box], inside: Box) -> bool:
    space = _space(place, mark[2])
    held = space[0] >= inside[0] and space[1] >= inside[1] and space[2] <= inside[2] and space[3] <= inside[3]
    return held and not any(_cross(space, box) for box in taken) and _joins(mark, place, taken)


def _clear(mark: Mark, place: Place, others: Sequence[Mark]) -> bool:
    """Whether nobody would take the name for that of another mark."""
    space = _space(place, mark[2])
    least = HALF if far(mark, place) else _away(space, mark) + 3
    return all(_away(space, other) >= least for other in others)


def _away(space: Box, mark: Mark) -> float:
    """How far a text is from the middle of a mark."""
    x, y, _ = mark
    return math.hypot(max(space[0] - x, 0.0, x - space[2]), max(space[1] - y, 0.0, y - space[3]))


def _joins(mark: Mark, place: Place, taken: Sequence[Box]) -> bool:
    """Whether the line from a mark to its name, if there is one, runs over no other mark or name."""
    if not far(mark, place):
        return True
    x, y, _ = mark
    others = [box for box in taken if not (box[0] <= x <= box[2] and box[1] <= y <= box[3])]
    steps = [(x + (place[0] - x) * step / 12, y + (place[1] - 4 - y) * step / 12) for step in range(13)]
    return not any(box[0] < at < box[2] and box[1] < here < box[3] for box in others for at, here in steps)


def _cross(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]

"""What a parameter may be: a range of numbers, or a choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nearkin import checks

# Values of a parameter without steps, where a list of them is needed.
POINTS = 5
KEYS = ("low", "high", "step", "log", "whole", "choices")


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both among them: in steps from ``low``, or any number; ``log``: in even factors.

    >>> Range(0, 1, step=0.25).values()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> Range(1e-4, 1, log=True).values()
    [0.0001, 0.001, 0.01, 0.1, 1.0]
    """

    low: float
    high: float
    step: float = 0.0
    log: bool = False
    whole: bool = False

    @property
    def count(self) -> int | None:
        """How many values there are; None: any number between."""
        if self.step:
            return math.floor((self.high - self.low) / self.step + 1e-9) + 1
        return int(self.high - self.low) + 1 if self.whole else None

    def value(self, place: int) -> float | int:
        """The value at a place, counted from 0, of a range that has steps."""
        return self._tidy(self.low + place * (self.step or 1))

    def values(self, points: int = POINTS) -> list[Any]:
        """All values in order, or ``points`` evenly spaced ones where there is no step."""
        if self.count is not None:
            return [self.value(place) for place in range(self.count)]
        if points == 1:
            return [self._tidy(self._between(0.5))]
        return [self._tidy(self._between(place / (points - 1))) for place in range(points)]

    def _between(self, share: float) -> float:
        if self.log:
            return self.low * math.pow(self.high / self.low, share)
        return self.low + (self.high - self.low) * share

    def snap(self, value: float) -> float | int:
        """The value of this range that is nearest.

        >>> Range(0, 1, step=0.1).snap(0.30000000000000004), Range(2, 100, step=2).snap(0.5)
        (0.3, 2.0)
        """
        inside = min(max(value, self.low), self.high)
        if self.count is None:
            return self._tidy(inside)
        return self.value(min(round((inside - self.low) / (self.step or 1)), self.count - 1))

    def ends(self) -> list[Any]:
        """The least and the greatest value; the last step may fall short of ``high``.

        >>> Range(0, 1, step=0.3).ends()
        [0.0, 0.9]
        """
        return [self.snap(self.low), self.snap(self.high)]

    def _tidy(self, value: float) -> float | int:
        # Twelve digits: 0.1 * 3 becomes 0.3 in files and tables.
        return round(value) if self.whole else float(f"{value:.12g}")

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Choice:
    """One of several values, numbers or texts, without an order."""

    choices: tuple[Any, ...]

    @property
    def count(self) -> int:
        return len(self.choices)

    def values(self, points: int = POINTS) -> list[Any]:
        return list(self.choices)

    def ends(self) -> list[Any]:
        """Every choice, since none lies between others."""
        return list(self.choices)

    def snap(self, value: Any) -> Any:
        return next((choice for choice in self.choices if choice == value), self.choices[0])

    def record(self) -> dict[str, Any]:
        return {"choices": list(self.choices)}


Parameter = Range | Choice


def read(name: str, given: object, known: Parameter | None = None) -> Parameter:
    """A parameter as a file or a flag gives it: a list of choices, or a table over the known range.

    >>> read("lr", {"low": 1e-5, "high": 1e-3, "log": True})
    Range(low=1e-05, high=0.001, step=0.0, log=True, whole=False)
    >>> read("miner", ["hard", "semihard"])
    Choice(choices=('hard', 'semihard'))
    """
    if isinstance(given, Mapping):
        for key in given:
            if key not in KEYS:
                raise ValueError(checks.unknown(f"ranges: key of {name}", key, KEYS))
    choices = given.get("choices") if isinstance(given, Mapping) else given
    if isinstance(choices, list | tuple):
        return _choice(name, choices)
    if not isinstance(given, Mapping) or choices is not None:
        raise ValueError(
            f"ranges: {name} must be a table such as {{low = 0, high = 1, step = 0.1}} or a list of choices, "
            f"got {given!r}; write one of these."
        )
    return _range(name, {**(known.record() if isinstance(known, Range) else {}), **given})


def _choice(name: str, choices: list[Any] | tuple[Any, ...]) -> Choice:
    plain = all(isinstance(entry, str | int | float) for entry in choices)
    if not plain or len(choices) < 2 or len(set(choices)) < len(choices):
        raise ValueError(
            f"ranges: the choices of {name} must be two or more different texts or numbers, got {list(choices)!r}; "
            f"leave {name} out of the search if there is only one."
        )
    return Choice(tuple(choices))


def _range(name: str, facts: Mapping[str, Any]) -> Range:
    for key in ("low", "high", "step"):
        value = facts.get(key, 0.0 if key == "step" else None)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"ranges: {key} of {name} must be a finite number, got {value!r}; give low and high.")
    for key in ("log", "whole"):
        if not isinstance(facts.get(key, False), bool):
            raise ValueError(f"ranges: {key} of {name} must be true or false, got {facts[key]!r}; change it.")
    found = Range(**facts)
    if not found.low < found.high:
        raise ValueError(
            f"ranges: low of {name} must be below high, got {found.low:g} and {found.high:g}; swap or change them."
        )
    if found.step < 0 or (found.log and found.step):
        raise ValueError(
            f"ranges: step of {name} must be above 0, and none with log, got {found.step:g}; change it or leave it out."
        )
    if found.log and found.low <= 0:
        raise ValueError(f"ranges: low of {name} must be above 0 with log, got {found.low:g}; raise it.")
    if found.whole and any(value != int(value) for value in (found.low, found.high, found.step)):
        raise ValueError(f"ranges: {name} is whole, so low, high and step must be, got {dict(facts)}; change them.")
    return found

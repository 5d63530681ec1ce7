"""Settings and names: the ranges they must keep to, and the sentence for what does not. It loads no other library."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """The sentence for a misspelt name: it offers the nearest right one."""
    options = sorted(known)
    close = nearest(name, options)
    hint = f"did you mean {close!r}?" if close else f"choose one of {', '.join(options)}."
    return f"{kind} {name!r} is not known; {hint}"


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The name that is most like this one; None where none is."""
    options, word = sorted(known), str(name)
    begun = max((option for option in options if word.startswith((f"{option}_", f"{option}-"))), key=len, default=None)
    if begun is not None and not difflib.get_close_matches(word, options, n=1, cutoff=0.8):
        return begun  # batch_size is another word for batch; batches, which is spelt more like it, is something else
    return next(iter(difflib.get_close_matches(word, options, n=1, cutoff=0.4)), None)


@dataclass(frozen=True)
class Limit:
    """The range a numeric setting must lie in, as data, so that tests can walk over every setting."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    whole: bool = False
    none: bool = False

    def allows(self, value: object) -> bool:
        if value is None:
            return self.none
        if isinstance(value, bool) or not isinstance(value, int if self.whole else (int, float)):
            return False
        try:
            finite = math.isfinite(value)
        except OverflowError:  # a whole number with more digits than a float has
            finite = self.whole
        if not finite:
            return False
        # Compared as it came: large whole numbers lose digits in a float, or do not fit into one.
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a finite number"
        parts = []
        if self.low > -math.inf:
            parts.append(f"{'above' if self.low_open else 'at least'} {_shown(self.low)}")
        if self.high < math.inf:
            parts.append(f"{'below' if self.high_open else 'at most'} {_shown(self.high)}")
        return f"{kind} {' and '.join(parts)}".rstrip() + (" or None" if self.none else "")


def _shown(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


ANY = Limit()
POSITIVE = Limit(low=0, low_open=True)
NOT_NEGATIVE = Limit(low=0)
COUNT = Limit(low=1, whole=True)
SEED = Limit(low=0, high=2**63 - 1, whole=True)
"""Larger seeds do not fit into the whole numbers of torch."""


def plain(value: Any) -> Any:
    """Numbers of NumPy, also in a list, as Python's own: they are compared, shown and stored like these."""
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def setting(owner: str, name: str, value: object, limit: Limit | tuple[object, ...]) -> None:
    """Raise unless ``value`` lies within ``limit`` (a range, or a tuple of choices)."""
    if isinstance(limit, Limit):
        if not limit.allows(value):
            raise ValueError(f"{owner}: {name} must be {limit}, got {value!r}; change {name}.")
    elif not any(value is choice or (type(value) is type(choice) and value == choice) for choice in limit):
        choices = " or ".join(repr(choice) for choice in limit)
        raise ValueError(f"{owner}: {name} must be {choices}, got {value!r}; choose one of these.")

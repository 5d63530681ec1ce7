"""Numbers and lists as pages say them."""

from __future__ import annotations

from collections.abc import Sequence


def point(value: float, digits: int = 1) -> str:
    """A difference with its sign; none for what rounds to zero."""
    return "0." + "0" * digits if abs(value) < 0.5 * 10**-digits else f"{value:+.{digits}f}"


def chance(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.9995 else "1"


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def counted(number: int, word: str, several: str = "") -> str:
    return f"one {word}" if number == 1 else f"{number} {several or word + 's'}"

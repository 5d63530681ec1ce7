"""Numbers and lists as a person would say them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from nearkin import checks
from nearkin.wording import count as count

# Measures that are shares of 1 are shown in percent, as in the papers.


def percent(value: float) -> str:
    """
    >>> percent(0.67104), percent(float("nan"))
    ('67.10', '-')
    """
    return f"{100 * value:.2f}" if math.isfinite(value) else "-"


def between(low: float, high: float) -> str:
    """
    >>> between(0.659, 0.683)
    '[65.90, 68.30]'
    """
    return f"[{percent(low)}, {percent(high)}]" if math.isfinite(low) and math.isfinite(high) else "-"


def rank(value: float) -> str:
    """
    >>> rank(38.0), rank(3.16667), rank(float("nan"))
    ('38', '3.17', '-')
    """
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def ranks_of(values: Sequence[float]) -> list[str]:
    """The ranks of one column, whose decimals stand below each other: all have them, or none has.

    >>> ranks_of([38.0, 12.0]), ranks_of([43.0, 44.5, float("nan")])
    (['38', '12'], ['43.00', '44.50', '-'])
    """
    whole = all(value == round(value) for value in values if math.isfinite(value))
    return [rank(value) if whole or not math.isfinite(value) else f"{value:.2f}" for value in values]


def chance(p: float) -> str:
    """
    >>> chance(0.0312), chance(0.00001), chance(1.0)
    ('p = 0.031', 'p < 0.0001', 'p = 1')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def series(names: Sequence[str], most: int = 12) -> str:
    """
    >>> series(["a"]), series(["a", "b"]), series(["a", "b", "c"]), series(["a", "b", "c", "d"], most=2)
    ('a', 'a and b', 'a, b and c', 'a, b and 2 others')
    """
    shown = list(names)
    if len(shown) > most + 1:
        shown = [*shown[:most], f"{len(shown) - most} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def no_metric(metric: str, known: Iterable[str]) -> str:
    """The sentence for a measure that is not there: of a recall at another depth nobody can guess which was meant.

    >>> no_metric("recall@3", ["recall@16", "recall@1", "nmi"])
    "metric must be one of nmi, recall@1, recall@16, got 'recall@3'; choose one of these."
    >>> no_metric("recal@1", ["recall@1", "nmi"])
    "metric 'recal@1' is not known; did you mean 'recall@1'?"
    """
    options = sorted(known, key=lambda name: (name.partition("@")[0], len(name), name))
    name, _, depth = metric.partition("@")
    if depth.isdigit() and any(option.startswith(f"{name}@") for option in options):
        return f"metric must be one of {', '.join(options)}, got {metric!r}; choose one of these."
    return checks.unknown("metric", metric, options)

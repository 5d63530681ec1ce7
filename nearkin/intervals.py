"""Intervals for the measures of a run, from test classes drawn anew: the card of a model and the page say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nearkin.results import Result

Found = tuple[dict[str, tuple[float, float]], str]
"""The bounds of each measure, and why there are none."""
WHOLE = ("nmi", "f1")
"""Measures of the whole test set: no query has one of its own."""


def intervals(result: Result) -> Found:
    """95 % intervals of the measures of a run over its test classes, by the bootstrap of the tournament."""
    from nearkin.tournament import bootstrap
    from nearkin.tournament.answers import Answers, gather

    kept: dict[str, Answers] = {}
    why = ""
    try:
        for name in result.metrics:
            if name in WHOLE:
                continue
            answers = gather(Path(), [[result]], name)
            if not isinstance(answers, str):
                kept[name] = answers
            elif name.startswith("recall@"):
                why = why or f"No interval: {answers}."
        if not kept:
            return {}, why
        sizes = next(iter(kept.values())).sizes
        kept = {name: found for name, found in kept.items() if np.array_equal(found.sizes, sizes)}
        # Measures stand where losses stand in a tournament: the same classes are drawn for all of them.
        drawn = bootstrap(np.concatenate([found.sums for found in kept.values()]), sizes)
    except Exception as error:  # a torn file, too few classes, no SciPy: the page says it
        return {}, f"No interval: {str(error).rstrip('.') or type(error).__name__}."
    pairs = zip(drawn.low.tolist(), drawn.high.tolist(), strict=True)
    bounds = [(round(max(0.0, low), 6), round(min(1.0, high), 6)) for low, high in pairs]
    return dict(zip(kept, bounds, strict=True)), ""

"""Intervals for the measures of runs, from test classes drawn anew; worked out in the background, run after run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.results import Result

Found = tuple[dict[str, tuple[float, float]], str]
"""The bounds of each measure, and why there are none."""
NOTHING: Found = ({}, "")
WHOLE = ("nmi", "f1")
"""Measures of the whole test set: no query has one of its own."""


class Bounds:
    """Intervals of runs by name, each kept until the files of the run change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Any, Found]] = {}
        self._wanted: dict[str, tuple[Any, Result]] = {}
        self._busy = False

    def of(self, result: Result, stamp: Any) -> Found | None:
        """The intervals of a run whose files have this stamp; None as long as they are being worked out."""
        with self._lock:
            known = self._known.get(result.id)
            if known is not None and known[0] == stamp:
                return known[1]
            self._wanted[result.id] = stamp, result
            if not self._busy:
                self._busy = True
                threading.Thread(target=self._work, daemon=True).start()
        return None

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._busy = False
                    return
                name = next(iter(self._wanted))
                stamp, result = self._wanted.pop(name)
            found = intervals(result)
            with self._lock:
                self._known[name] = stamp, found


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

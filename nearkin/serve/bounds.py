"""Intervals for the measures of runs, from test classes drawn anew; worked out in the background, run after run."""

from __future__ import annotations

import threading
from typing import Any

from nearkin.intervals import Found, intervals
from nearkin.results import Result

NOTHING: Found = ({}, "")


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

"""The runs of a benchmark: who leads, by how much, who cannot be told apart, and how each run went."""

from __future__ import annotations

import math
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from nearkin import results as files
from nearkin.report.bench import Bench, read
from nearkin.tournament import Experiment, groups, letters
from nearkin.tournament.experiment import NOT_YET
from nearkin.tournament.words import count
from nearkin.wording import feedback

KINDS = {"validate": "validation classes", "evaluate": "test classes", "audit": "test classes, opened after the choice"}


class Runs:
    """The results of a benchmark, read again when they have changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._known: tuple[list[tuple[int, int]], Bench, dict[str, Any]] | None = None

    def facts(self) -> dict[str, Any]:
        """What the page shows."""
        return self._read()[1]

    @property
    def bench(self) -> Bench:
        return self._read()[0]

    def _read(self) -> tuple[Bench, dict[str, Any]]:
        with self._lock:
            # A new grid changes which results count, and none of them.
            stamp = [_stamp(self.folder / name) for name in (files.FILE, files.CURRENT)]
            if self._known is None or self._known[0] != stamp:
                bench = self._bench()
                self._known = stamp, bench, described(bench)
            return self._known[1:]

    def _bench(self) -> Bench:
        try:
            return read(self.folder)
        except ValueError as error:
            if self._known is None:
                raise
            # It was a benchmark when the server began; a grid that was just given has no results yet.
            return Bench(self.folder, (), self._known[1].metric, None, str(error), ())


def described(bench: Bench) -> dict[str, Any]:
    """The verdict in words, and for each experiment its board and curves."""
    verdict = bench.verdict
    return {
        "metric": bench.metric,
        "sentence": verdict.sentence if verdict is not None else bench.why,
        "notes": [*bench.remarks, *(verdict.notes if verdict is not None else ())],
        "experiments": [
            _experiment(bench, table, place)
            for place, table in enumerate(table for table in bench.tables if table.labels)
        ],
        "failed": [f"{run.label}, seed {run.seed}: {run.error or 'failed'}" for run in bench.begun if not run.done],
        "missing": _missing(bench),
    }


def _missing(bench: Bench) -> list[str]:
    """How many runs of each loss the grid asks for and has not got."""
    asked = Counter(run.label for run in bench.results)
    lacking = Counter(run.label for run in bench.results if run.status == files.MISSING)
    return [f"{label}: {number} of {count(asked[label], 'run')} {NOT_YET}" for label, number in lacking.items()]


def _experiment(bench: Bench, table: Experiment, number: int) -> dict[str, Any]:
    order, compared = table.order, table.comparison
    named = [""] * len(order)
    if compared is not None:
        apart = compared.apart[order][:, order]
        named = letters(groups(apart), len(order))
    board = []
    for place, at in enumerate(order):
        label = table.labels[at]
        counted = bench.counted(table, label)
        board.append(
            {
                "key": f"bench/{number}/{label}",
                "label": label,
                "colour": bench.look(label).colour,
                "score": _number(table.scores[at]),
                "spread": _number(table.spread[at]),
                "low": _number(compared.intervals.low[at]) if compared is not None else None,
                "high": _number(compared.intervals.high[at]) if compared is not None else None,
                "letters": named[place],
                "runs": len(counted),
                "asked": bool(counted) and (bench.path(counted[0]) / files.QUERIES).is_file(),
            }
        )
    return {"name": table.name, "board": board, "reason": table.reason, "curves": _curves(bench, table)}


def _curves(bench: Bench, table: Experiment) -> list[dict[str, Any]]:
    """The measure of every epoch of every run, by what it was measured on."""
    found = []
    for kind, words in KINDS.items():
        lines = []
        for label in table.labels:
            for run in bench.counted(table, label):
                points = [
                    [record["epoch"] + 1, _number(record[bench.metric])]
                    for record in bench.log(run, kind)
                    if isinstance(record.get("epoch"), int) and isinstance(record.get(bench.metric), (int, float))
                ]
                if len(points) > 1:
                    look = bench.look(label)
                    drawn = {"colour": look.colour, "dashed": look.dashed}
                    lines.append({"label": label, "seed": run.seed, **drawn, "points": points})
        if lines:
            found.append({"on": words + feedback(table.protocol), "lines": lines})
    return found


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def _number(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None

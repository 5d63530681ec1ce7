"""The table of an experiment: one row for each loss, those that had to be left out with the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearkin.report.bench import TEST_FEEDBACK, Bench
from nearkin.results import MISSING, SHARED, Result, is_share
from nearkin.tournament import Experiment, groups, letters
from nearkin.tournament.experiment import NOT_YET
from nearkin.tournament.ranks import ranks

NONE = math.nan


@dataclass(frozen=True)
class Row:
    """A loss in an experiment. Scores are shares of 1; what does not apply is not a number.

    ``behind`` with bounds: the difference from the loss in first place; ``p`` of that difference; ``metrics``: means over
    the same ``runs``; ``numbers`` of a vector; ``lacking``: how many runs failed or are missing; ``hole``: why there is no
    score.
    """

    table: Experiment
    label: str
    rank: float = NONE
    runs: int = 0
    score: float = NONE
    low: float = NONE
    high: float = NONE
    deviation: float = NONE
    behind: float = NONE
    behind_low: float = NONE
    behind_high: float = NONE
    p: float = NONE
    letters: str = ""
    metrics: tuple[tuple[str, float], ...] = ()
    seconds: float = NONE
    images_per_second: float = NONE
    peak_bytes: float = NONE
    numbers: int = 0
    hole: str = ""
    lacking: int = 0

    def metric(self, name: str) -> float:
        return dict(self.metrics).get(name, NONE)


def rows(bench: Bench, table: Experiment) -> list[Row]:
    """The losses of an experiment, the best first, holes last."""
    found, order = table.comparison, table.order
    places = ranks(table.scores) if len(table.labels) else np.empty(0)
    marks = letters(groups(found.apart[np.ix_(order, order)]), len(order)) if found is not None else [""] * len(order)
    made, measures = [], names(bench)
    for number, at in enumerate(order):
        label, first = table.labels[at], order[0]
        runs = bench.counted(table, label)
        own: dict[str, Any] = {}
        if found is not None:
            near = found.intervals
            own = {"low": float(near.low[at]), "high": float(near.high[at])}
            if number:
                own |= {
                    "behind": float(near.difference[first, at]),
                    "behind_low": float(near.difference_low[first, at]),
                    "behind_high": float(near.difference_high[first, at]),
                    "p": float(found.p[first, at]),
                }
        elif number:
            own = {"behind": float(table.scores[first] - table.scores[at])}
        made.append(
            Row(
                table,
                label,
                float(places[at]),
                len(runs),
                float(table.scores[at]),
                deviation=float(table.spread[at]),
                letters=marks[number],
                metrics=tuple((name, mean([value(run.metrics, name) for run in runs])) for name in measures),
                seconds=cost(runs, "seconds"),
                images_per_second=cost(runs, "images_per_second"),
                peak_bytes=cost(runs, "peak_bytes"),
                numbers=runs[0].total,
                lacking=_lacking(bench, table, label),
                **own,
            )
        )
    left_out = dict.fromkeys(run.label for run in bench.runs(table) if run.label not in table.labels)
    return made + [
        Row(table, label, hole=_hole(bench, table, label), lacking=_lacking(bench, table, label)) for label in left_out
    ]


def best_interval(table: Experiment) -> tuple[float, float] | None:
    """The interval of the loss with the best mean as shares of 1; None where nothing was compared."""
    if table.comparison is None:
        return None
    near, first = table.comparison.intervals, table.order[0]
    return float(near.low[first]), float(near.high[first])


def names(bench: Bench) -> list[str]:
    """The measures of the results: recall by k, then the others; the one that ranks comes first."""
    found = {name for result in bench.results for name, value in result.metrics.items() if _number(value)}

    def key(name: str) -> tuple[bool, bool, int, str]:
        kind, _, k = name.partition("@")
        return name != bench.metric, kind != "recall", int(k) if k.isdecimal() else 0, name

    return sorted((name for name in found if is_share(name)), key=key)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def value(found: Mapping[str, Any] | None, name: str) -> float:
    """A number by its name; not a number where there is none."""
    held = (found or {}).get(name)
    return float(held) if isinstance(held, int | float) and not isinstance(held, bool) else NONE


def mean(values: Sequence[float]) -> float:
    """The mean; not a number where one of the values is missing: nothing is averaged over a hole."""
    return float(np.mean(values)) if len(values) else NONE


def cost(runs: Sequence[Result], name: str) -> float:
    """The mean of a cost over runs, if all of them have it."""
    return mean([value(run.cost, name) for run in runs])


def sharing(runs: Sequence[Result]) -> str:
    """How many runs shared a device, in words; empty where each had it alone, or where a run does not say."""
    found = [run.where.get(SHARED) for run in runs]
    known = sorted({number for number in found if isinstance(number, int)})
    if len(known) == 0 or None in found or known[-1] < 2:
        return ""
    return f"{known[0]} runs" if len(known) == 1 else f"{known[0]} to {known[-1]} runs"


UNKNOWN_SHARING = "whether other runs shared the device was not recorded"


def sharing_unknown(runs: Sequence[Result]) -> bool:
    """Whether runs with a time do not say how many shared their device."""
    return any(SHARED not in run.where and "seconds" in run.cost for run in runs)


def chosen(run: Result) -> int:
    """The epoch that validation or, under test_feedback, the test set chose, the first being 1; 0 where nothing did."""
    chooser = run.cost if run.protocol == TEST_FEEDBACK else run.validation or {}
    epoch = chooser.get("epoch") if run.done else None
    return epoch + 1 if isinstance(epoch, int) else 0


def _lacking(bench: Bench, table: Experiment, label: str) -> int:
    """How many of the folds and seeds of an experiment a loss has no score of: its run failed, or there is none."""
    runs = bench.runs(table)
    scored = {
        (run.fold, run.seed)
        for run in runs
        if run.label == label and run.done and math.isfinite(value(run.metrics, bench.metric))
    }
    return len({(run.fold, run.seed) for run in runs} - scored)


def _hole(bench: Bench, table: Experiment, label: str) -> str:
    runs = [run for run in bench.runs(table) if run.label == label]
    failed = [run for run in runs if not run.done and run.status != MISSING]
    if failed:
        why = failed[0].error.strip().splitlines()[0] if failed[0].error.strip() else "no reason given"
        many = f"{len(failed)} of {len(runs)} runs failed" if len(runs) > 1 else "failed"
        return f"{many}: {why}"
    missing = [run for run in runs if run.status == MISSING]
    if missing:
        return NOT_YET if len(missing) == len(runs) else f"{len(missing)} of {len(runs)} runs {NOT_YET}"
    if any(bench.metric not in run.metrics for run in runs):
        return f"no {bench.metric}"
    return "too few runs to compare"

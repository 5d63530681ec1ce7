"""Published numbers that belong beside a result: the same data set, network, size of embedding and loss."""

from __future__ import annotations

import contextlib
import inspect
import math
from typing import Any

from nearkin import config, losses, published
from nearkin.published import Fact
from nearkin.report.bench import Bench
from nearkin.results import MISSING, Result
from nearkin.tournament import Experiment


def beside(bench: Bench, table: Experiment, label: str, *, alike: bool = False) -> list[Fact]:
    """What was published about the loss of this label in this experiment; nothing where a name is unknown there.

    Facts of single folds, of validation classes and those known to be wrong are left out; ``alike``: also those printed
    for other settings, or another share of validation classes, than the runs have.
    """
    runs = [run for run in bench.runs(table) if run.label == label and run.status != MISSING]
    if not runs or runs[0].loss not in losses.LOSSES:
        return []
    wanted = losses.LOSSES[runs[0].loss].name, table.data, table.network, runs[0].total  # papers count every level
    return [
        fact
        for entry in published.tables()
        for fact in entry.facts
        if (fact.loss, fact.data, fact.network, fact.dim) == wanted
        and fact.metric == bench.metric
        and fact.fold is None
        and not fact.flag
        and (not alike or _alike(fact, runs[0]))
    ]


def _alike(fact: Fact, run: Result) -> bool:
    """Whether a run has every setting that is printed beside a number; what is not printed nobody knows."""
    if fact.split and not _same(fact.split.split("/")[0], 100 * run.settings.get("ratio", math.nan)):
        return False
    known = _settings(run)
    printed = config.table("setting", fact.setting.split())
    return all(_same(value, known.get(key)) for key, value in printed.items())


def _settings(run: Result) -> dict[str, Any]:
    """The settings of a run and of its loss, which go first, by the names and values that published tables have."""
    cls = losses.LOSSES[run.loss]
    own = {key: entry.default for key, entry in inspect.signature(cls).parameters.items()}
    own |= run.settings.get("loss_settings") or {}
    if own.get("miner") is None:
        own["miner"] = "all" if own.get("epsilon") is None else "vthm"
    return run.settings | own | {"levels": run.settings.get("levels") or "H"}


def _same(printed: Any, own: Any) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        return math.isclose(float(printed), float(own), rel_tol=1e-3)
    return bool(printed == own)

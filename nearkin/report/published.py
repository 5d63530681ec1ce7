"""Published numbers that belong beside a result: the same data set, network, size of embedding and loss."""

from __future__ import annotations

from nearkin import losses, published
from nearkin.published import Fact
from nearkin.report.bench import Bench
from nearkin.results import MISSING, Result
from nearkin.tournament import Experiment


def beside(bench: Bench, table: Experiment, label: str, metric: str | None = None) -> list[Fact]:
    """What was published about the loss of this label in this experiment; nothing where a name is unknown there.

    Facts of single folds, of validation classes and those known to be wrong are left out.
    """
    runs = [run for run in bench.runs(table) if run.label == label and run.status != MISSING]
    if not runs or runs[0].loss not in losses.LOSSES:
        return []
    wanted = losses.LOSSES[runs[0].loss].name, table.data, table.network, total(runs[0])
    return [
        fact
        for entry in published.tables()
        for fact in entry.facts
        if (fact.loss, fact.data, fact.network, fact.dim) == wanted
        and fact.metric == (metric or bench.metric)
        and fact.fold is None
        and not fact.flag
    ]


def total(run: Result) -> int:
    """All dimensions of an embedding: papers count those of every level."""
    levels = str(run.settings.get("levels") or "")
    return run.dim * (3 if levels == "lmh" else len(levels.split(",")) if levels else 1)

"""Published numbers that belong beside a result: the same data set, network, size of embedding and loss."""

from __future__ import annotations

from nearkin import losses, published
from nearkin.published import Fact
from nearkin.report.bench import Bench
from nearkin.results import MISSING
from nearkin.tournament import Experiment


def beside(bench: Bench, table: Experiment, label: str, metric: str | None = None) -> list[Fact]:
    """What was published about the loss of this label in this experiment; nothing where a name is unknown there.

    Facts of single folds, of validation classes and those known to be wrong are left out.
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
        and fact.metric == (metric or bench.metric)
        and fact.fold is None
        and not fact.flag
    ]

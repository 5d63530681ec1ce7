"""What training adds to the network as it came, as sentences for the notes of a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from nearkin import results as files
from nearkin.results import Result
from nearkin.tournament.experiment import Experiment
from nearkin.tournament.words import count, percent, series

MOST = 4
"""How many experiments are named one by one."""


def untrained(results: Sequence[Result], tables: Sequence[Experiment], metric: str) -> list[str]:
    """Which losses are no better than the network before the first step: the best of them may have taught it nothing.

    Means are compared as they are. Nothing where no run has measured the network so, as those of earlier versions.
    """
    means = files.untrained(results, metric)
    known = [(table, mean) for table in tables if (mean := means.get(_experiment(table))) is not None]
    if not known:
        return []
    if len(tables) == 1:
        table, mean = known[0]
        return [f"The network as it came has {metric} {percent(mean)} %; by their means {_who(table, mean)}."]
    least = [(table, mean) for table, mean in known if _not_better(table, mean)]
    if not least:
        return [
            f"By their means all losses are better than the network as it came, in {count(len(known), 'experiment')}."
        ]
    each = [f"{table.name} ({metric} {percent(mean)} %: {_who(table, mean)})" for table, mean in least]
    return [
        f"The network as it came is not exceeded by the means of all losses in {len(least)} of "
        f"{count(len(known), 'experiment')}: {series(each, MOST)}."
    ]


def _who(table: Experiment, mean: float) -> str:
    """Which losses are better, in a few words."""
    least = _not_better(table, mean)
    if not least:
        return "all losses are better"
    if len(least) == len(table.labels):
        return "no loss is better"
    return f"{series(least)} {'is' if len(least) == 1 else 'are'} not better"


def _not_better(table: Experiment, mean: float) -> list[str]:
    return [label for label, score in zip(table.labels, table.scores, strict=True) if score <= mean]


def _experiment(table: Experiment) -> tuple[str, str, int, str]:
    return table.data, table.network, table.dim, table.protocol

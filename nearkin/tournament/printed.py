"""Experiments from published tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nearkin.published.fact import Fact
from nearkin.tournament.experiment import Experiment
from nearkin.tournament.words import no_metric

# Deep Dive's own tournament, its Table 11, is about these.
OWN, TABLES = "deep_dive", (6, 7, 8)

Key = tuple[str, str, int, str]  # data set, network, size of embedding, protocol


def printed(source: str = "deep_dive", tables: Sequence[int] = (), metric: str = "recall@1") -> list[Experiment]:
    """The experiments in tables of a publication: one for each data set, network and size of embedding.

    Without ``tables``: those of Deep Dive's own tournament, of another source all. Only numbers that its authors measured
    themselves count: those quoted from elsewhere come from other networks and protocols. Rows of an ablation are no
    losses of their own; a row with settings is one where its table has another of the same loss. Doubtful cells
    (``flag``) are left out and named; of two rows about the same, the first counts.

    >>> found = printed()
    >>> len(found), found[0].name
    (12, 'cub200, resnet50, 64 dimensions, test_feedback')
    """
    from nearkin import published

    if not tables:
        tables = TABLES if source == OWN else [table.number for table in published.tables(source)]
    metrics = {fact.metric for number in tables for fact in published.facts(source, number)}
    if metric not in metrics and metrics:
        which = f"{source} {', '.join(map(str, tables))}"
        raise ValueError(f"{no_metric(metric, metrics)} Tables {which} print no other.")
    cells: dict[Key, dict[str, float]] = {}
    holes: dict[Key, dict[str, list[str]]] = {}
    for number in tables:
        for key, fact in _measured(published.facts(source, number, metric=metric)):
            if fact.flag:
                holes.setdefault(key, {}).setdefault(fact.loss, []).append(fact.flag)
                continue
            cells.setdefault(key, {}).setdefault(fact.loss, fact.value / 100)
    if not cells:
        raise ValueError(
            f"tables must hold {metric} of losses under one network and size, measured by the authors themselves and not "
            f"in an ablation, got none in {source} {', '.join(map(str, tables))}; choose others, such as --published "
            f"deep_dive --tables 6 7 8."
        )
    protocols = sorted({protocol for *_, protocol in cells})
    if len(protocols) > 1:
        raise ValueError(
            f"tables must share one protocol, got {' and '.join(protocols)} in {source} {', '.join(map(str, tables))}; "
            f"choose tables of one of them."
        )
    return [
        Experiment(
            *key,
            tuple(row),
            np.array(list(row.values())),
            np.full(len(row), np.nan),
            reason="a published number says nothing about single queries",
            holes=tuple(
                f"{_title(key)}: {loss} is left out here. {' '.join(flags)}"
                for loss, flags in holes.get(key, {}).items()
            ),
        )
        for key, row in cells.items()
    ]


def _measured(facts: Iterable[Fact]) -> list[tuple[Key, Fact]]:
    """The facts of one table that stand for a loss, each with its experiment."""
    rows: dict[tuple[Key, str], dict[tuple[str, str], None]] = {}
    found = []
    for fact in facts:
        if fact.quoted or fact.split or fact.fold is not None or not fact.loss or not fact.network or fact.dim is None:
            continue
        key = (fact.data, fact.network, fact.dim, fact.protocol)
        rows.setdefault((key, fact.loss), {})[fact.method, fact.setting] = None
        found.append((key, fact))
    return [(key, fact) for key, fact in found if not fact.setting or len(rows[key, fact.loss]) == 1]


def _title(key: Key) -> str:
    return Experiment(*key, (), np.empty(0), np.empty(0)).name

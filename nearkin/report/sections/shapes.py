"""Recall against the size of the embedding, and networks side by side."""

from __future__ import annotations

import math

from nearkin.report.bench import Bench, ordered
from nearkin.report.figures.dots import dots
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.lines import Axis, Line, lines
from nearkin.report.markup import Section, by_data
from nearkin.tournament import Experiment


def sizes(bench: Bench) -> Section | None:
    """One panel for each data set and network with several sizes."""
    found: dict[tuple[str, str, str], list[Experiment]] = {}
    for table in bench.tables:
        found.setdefault((table.data, table.network, table.protocol), []).append(table)
    drawn: list[tuple[str, Figure]] = []
    for (data, network, protocol), tables in found.items():
        tables = sorted((table for table in tables if table.labels), key=lambda table: table.dim)
        if len(tables) < 2:
            continue
        series = [
            Line(label, bench.look(label), tuple((table.dim, 100 * _score(table, label)) for table in tables))
            for label in _labels(bench, tables)
        ]
        figure = lines(
            f"sizes-{len(drawn) + 1}",
            f"{data}, {network}",
            protocol,
            series,
            Axis("size of the embedding", tuple(float(table.dim) for table in tables), log=True),
            Axis(f"{bench.metric} in percent"),
            height=max(250.0, 70 + 13.0 * len(series)),
        )
        drawn.append((data, figure))
    if not drawn:
        return None
    lead = "Whether a larger embedding helps, and whether the order of the losses stays. A gap in a line is a hole."
    return Section("sizes", "Size of the embedding", lead, by_data(drawn), tuple(figure for _, figure in drawn))


def networks(bench: Bench) -> Section | None:
    """One panel for each data set and size with several networks."""
    found: dict[tuple[str, int, str], list[Experiment]] = {}
    for table in bench.tables:
        if table.labels:
            found.setdefault((table.data, table.dim, table.protocol), []).append(table)
    drawn: list[tuple[str, Figure]] = []
    for (data, dim, protocol), tables in found.items():
        if len(tables) < 2:
            continue
        kinds = [table.network for table in tables]
        rows = [(label, {table.network: _score(table, label) for table in tables}) for label in _labels(bench, tables)]
        under = f"{bench.metric} in percent, {protocol}"
        figure = dots(f"networks-{len(drawn) + 1}", f"{data}, {dim} dimensions", under, rows, kinds)
        drawn.append((data, figure))
    if not drawn:
        return None
    lead = "The same losses under several networks, a row for each loss. A mark that is not there is a hole."
    return Section("networks", "Networks side by side", lead, by_data(drawn), tuple(figure for _, figure in drawn))


def _labels(bench: Bench, tables: list[Experiment]) -> list[str]:
    """Every loss of these experiments, those with the best ranks first."""
    return ordered(bench, list(dict.fromkeys(label for table in tables for label in table.labels)))


def _score(table: Experiment, label: str) -> float:
    return float(table.scores[table.labels.index(label)]) if label in table.labels else math.nan

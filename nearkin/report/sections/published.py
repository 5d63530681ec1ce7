"""Our runs beside published numbers, each with its protocol and its source."""

from __future__ import annotations

import math

from nearkin.published import Fact, source_of, table_of
from nearkin.report import summary
from nearkin.report.bench import Bench
from nearkin.report.markup import Section, badge, cell, folded, grid, name, words
from nearkin.report.published import beside
from nearkin.report.summary import Row
from nearkin.tournament import Experiment
from nearkin.tournament.words import between, percent


def section(bench: Bench) -> Section | None:
    """A table for each experiment with published numbers; left out where there are none."""
    parts = []
    for table in bench.tables:
        rows = [line for row in summary.rows(bench, table) for line in _lines(bench, table, row)]
        if rows:
            headings = [("loss", "word"), (f"ours, {words(bench.metric)}", "number"), ("chosen by", "word")]
            headings += [("published", "number"), ("chosen by", "word"), ("difference", "number"), ("source", "word")]
            parts.append((name(table), grid(headings, rows, "sortable printed")))
    lead = (
        "The same data set, network, size and loss. Compare only numbers whose epoch was chosen in the same way: "
        "test_feedback means on the test set, which is too good; unknown means that the source does not say."
    )
    return Section("published", "Beside published numbers", lead, folded(parts)) if parts else None


def _lines(bench: Bench, table: Experiment, row: Row) -> list[str]:
    merged: dict[tuple[str, ...], list[Fact]] = {}
    for fact in beside(bench, table, row.label):
        key = (fact.source, fact.method, fact.protocol, fact.printed, fact.setting, fact.split)
        merged.setdefault(key, []).append(fact)
    ours = '<span class="missing">hole</span>'
    if not row.hole:
        near = f" <small>{between(row.low, row.high)}</small>" if math.isfinite(row.low) else ""
        ours = f"<b>{percent(row.score)}</b>{near}"
    made = []
    for facts in merged.values():
        fact = facts[0]
        gap = row.score - fact.value / 100
        cells = [
            cell(words(row.label), row.label, "word"),
            cell(ours, row.score, "number"),
            cell(badge(table.protocol), table.protocol, "word"),
            cell(words(fact.printed or f"{fact.value:g}"), fact.value, "number"),
            cell(badge(fact.protocol), fact.protocol, "word"),
            cell("" if row.hole else f"{100 * gap:+.2f}".replace("-", "−"), gap, "number"),
            cell(_source(facts), None, "word source"),
        ]
        made.append(f"<tr>{''.join(cells)}</tr>")
    return made


def _source(facts: list[Fact]) -> str:
    """Where the number is printed: the document, its tables, the row, and what is special about it."""
    fact = facts[0]
    where = ", ".join(dict.fromkeys(table_of(one.source, one.table).label for one in facts))
    parts = [f"{source_of(fact.source).title}, {where}: {fact.method}"]
    parts += [fact.setting] if fact.setting else []
    parts += [f"{fact.split} of the classes train / choose the epoch"] if fact.split else []
    parts += ["quoted there from another document"] if fact.quoted else []
    parts += list(dict.fromkeys(one.note for one in facts if one.note))
    return words("; ".join(parts))

"""Reads the published tables that come with the package: NAME.toml about a source, NAME-NN.csv for each of its tables.

A CSV file has one line per row of the printed table (several where a cell holds several numbers). Columns named as in
``ABOUT`` say what the row is about and go before what the TOML file says of the whole table; every other column holds
numbers and is named after its metric, with the data set before it where the table has several. "-" stands for what was
not reported.
"""

from __future__ import annotations

import csv
import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from nearkin.published.fact import Fact
from nearkin.published.table import Source, Table

SOURCES = ("ranked_list", "ranked_list_poster", "deep_dive", "unified_view", "nra")
ABOUT = ("method", "network", "dim", "setting", "fold", "split", "quoted", "note")
MISSING = "-"


@functools.cache
def read(name: str) -> tuple[Source, tuple[Table, ...]]:
    """A source and its tables, by number; read once."""
    folder = resources.files("nearkin.published") / "tables"
    about = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    found = []
    for entry in about["table"]:
        text = (folder / f"{name}-{entry['number']:02}.csv").read_text(encoding="utf-8")
        found.append(_table(name, entry, about["losses"], text))
    return Source(name, **about["source"]), tuple(found)


def _table(source: str, entry: Mapping[str, Any], losses: Mapping[str, str], text: str) -> Table:
    lines = list(csv.DictReader(text.splitlines(), strict=True))
    columns = [column for column in lines[0] if column not in ABOUT]
    flags = [dict(flag) for flag in entry.get("flags", ())]
    facts = [
        _fact(source, entry, losses, line, column, flags)
        for line in lines
        for column in columns
        if line[column] != MISSING
    ]
    unused = [flag for flag in flags if "used" not in flag]
    if unused:
        raise ValueError(
            f"{source}.toml: a flag must name a cell of table {entry['number']}, got {unused[0]}; mend it."
        )
    return Table(
        source,
        entry["number"],
        entry["label"],
        entry["caption"],
        entry["place"],
        tuple(entry.get("notes", ())),
        len(lines),
        tuple(columns),
        tuple(facts),
    )


def _fact(
    source: str,
    entry: Mapping[str, Any],
    losses: Mapping[str, str],
    line: Mapping[str, str],
    column: str,
    flags: list[dict[str, Any]],
) -> Fact:
    *prefix, metric = column.split(" ")
    value, _, deviation = line[column].partition(" ± ")
    row = {key: line.get(key, entry.get(key, "")) for key in ABOUT}
    quoted = row["quoted"] == "yes"
    key = {
        "method": row["method"],
        "dim": int(row["dim"]) if row["dim"] else None,
        "data": prefix[0] if prefix else entry["data"],
        "metric": metric,
    }
    return Fact(
        source=source,
        table=entry["number"],
        loss=entry["loss"] if "loss" in entry else losses[row["method"]],
        network=row["network"],
        protocol="unknown" if quoted else entry["protocol"],
        value=float(value),
        deviation=float(deviation) if deviation else None,
        printed=line[column],
        quoted=quoted,
        setting=row["setting"],
        fold=int(row["fold"]) if row["fold"] else None,
        split=row["split"],
        note=row["note"],
        flag=_flag(key, flags),
        **key,
    )


def _flag(key: Mapping[str, Any], flags: list[dict[str, Any]]) -> str:
    """Why the cell is doubtful; the flag is marked as used, so that one which fits no cell is noticed."""
    for flag in flags:
        if all(flag[name] == key[name] for name in key.keys() & flag.keys()):
            flag["used"] = True
            return str(flag["why"])
    return ""

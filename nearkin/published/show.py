"""Published tables as plain text: the list of them, and one with its numbers, notes and doubtful cells."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from nearkin.published.fact import Fact
from nearkin.published.find import source_of
from nearkin.published.table import Table

WIDTH = 110
WIDEST = 8
"""Columns of numbers beyond which each data set of a table gets lines of its own."""
VARYING = ("network", "dim", "setting", "fold", "split", "note", "quoted")


def listing(tables: Sequence[Table]) -> str:
    """A line per table under the name of its source."""
    lines = []
    for name in dict.fromkeys(table.source for table in tables):
        source = source_of(name)
        lines.append(f"{name}: {source.title} ({source.published})")
        rows = [["table", "numbers", "doubtful", "data", "protocol", "shows"]]
        for table in tables:
            if table.source == name:
                doubtful = str(len(table.flagged) or "")
                data, protocol = " ".join(table.data), " ".join(table.protocols)
                rows.append([str(table.number), str(len(table.facts)), doubtful, data, protocol, table.caption])
        lines += [f"  {line}" for line in aligned(rows, right=3)]
        lines.append("")
    return "\n".join(lines).rstrip()


def table_text(table: Table, facts: Sequence[Fact], notes: bool = True) -> str:
    """A table, or those of its facts that were asked for; a star marks what a line below calls doubtful."""
    lines = textwrap.wrap(f"{table.source}, {table.label} ({table.place}): {table.caption}", WIDTH)
    columns = dict.fromkeys((fact.data, fact.metric) for fact in facts)
    several = len({data for data, _ in columns}) > 1
    if several and len(columns) > WIDEST:
        for data in dict.fromkeys(data for data, _ in columns):
            lines += ["", *_block([fact for fact in facts if fact.data == data], several=False)]
    else:
        lines += ["", *_block(facts, several)]
    doubtful = [fact for fact in facts if fact.flag]
    lines += [""] * bool(doubtful)
    for fact in doubtful:
        cell = ", ".join(str(part) for part in (fact.method, fact.dim, fact.data, fact.metric, fact.printed) if part)
        lines += textwrap.wrap(f"* {cell}: {fact.flag}", WIDTH, subsequent_indent="  ")
    remarks = table.notes if notes else ()
    lines += [""] * bool(remarks)
    for note in remarks:
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def _block(facts: Sequence[Fact], several: bool) -> list[str]:
    """What all numbers share in one line, then the rows."""
    own = [fact for fact in facts if not fact.quoted] or facts
    shown = [name for name in VARYING if len({getattr(fact, name) for fact in facts}) > 1]
    first, protocol = facts[0], own[0].protocol
    shared = [
        "" if several else first.data,
        first.network if "network" not in shown else "",
        f"{first.dim} dimensions" if "dim" not in shown and first.dim else "",
        f"split {first.split}" if "split" not in shown and first.split else "",
        "unknown protocol" if protocol == "unknown" else protocol,
    ]
    columns = list(dict.fromkeys((fact.data, fact.metric) for fact in facts))
    names = [f"{data} {metric}" if several else metric for data, metric in columns]
    rows: dict[tuple[object, ...], dict[tuple[str, str], str]] = {}
    for fact in facts:
        about = (fact.method, *(getattr(fact, name) for name in shown))
        rows.setdefault(about, {})[fact.data, fact.metric] = fact.printed + "*" * bool(fact.flag)
    # A star hangs beyond the digits, so that these stay in line.
    cells = [["", *shown, *(f"{name} " for name in names)]]
    for about, values in rows.items():
        numbers = [values.get(column, "-") for column in columns]
        cells.append([*map(_word, about), *(text if text.endswith("*") else text + " " for text in numbers)])
    return [", ".join(filter(None, shared)), *_parted(aligned(cells, left=1 + len(shown)), [row[0] for row in cells])]


def _parted(lines: list[str], methods: list[str]) -> list[str]:
    """An empty line wherever the methods begin again from the first."""
    parted = lines[:2]
    for line, method, before in zip(lines[2:], methods[2:], methods[1:], strict=False):
        parted += ["", line] if method == methods[1] != before else [line]
    return parted


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" * value
    return "" if value is None else f"{value:>4}" if isinstance(value, int) else str(value)


def aligned(rows: Sequence[Sequence[str]], left: int = 0, right: int = 0) -> list[str]:
    """Lines with columns in line: the first ``left`` to the left and the others to the right, or the other way round.

    >>> aligned([["a", "1"], ["bb", "22"]], left=1)
    ['a    1', 'bb  22']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if (place < right or (left and place >= left)) else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines

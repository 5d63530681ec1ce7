"""Writes docs/published.md from the tables: python -m nearkin.published.page > docs/published.md"""

from __future__ import annotations

from nearkin.published.find import facts, sources, tables
from nearkin.published.table import Table

_TOP = """# Published results

The results tables of the five documents nearkin implements, as {count:,} facts: what was printed, with source, table,
network, embedding size and protocol. A number that cannot be right stays as it is, with a flag that says why.

    nearkin published                            # lists the tables
    nearkin published deep_dive 6                # shows one
    nearkin published --loss ranked_list --data cub200 --metric recall@1
    nearkin published --flagged                  # what should not be believed
    nearkin published --csv facts.csv            # everything, for other programs

    from nearkin import published

    for fact in published.facts(data="cub200", loss="proxy_anchor", network="resnet50", dim=512, metric="recall@1"):
        print(fact.source, fact.table, fact.value, fact.protocol, fact.flag)

How to read them:

- `test_feedback`: the model or its settings were chosen with the test classes. Compare such numbers with each other only.
- `quoted` rows were taken by the source from other documents; their protocol is unknown, their network and size may differ.
- `dim` counts all dimensions: ranked list loss on three levels has 3 x 512 = 1536.
- Rows are named as printed, `loss` is nearkin's name or empty; `setting` holds what the row varies, as settings of nearkin.
- `published.attainable(fact)` is false where no whole number of test queries gives the printed digits.
"""


def page() -> str:
    """The page: how to use the facts, a list of tables for each source, and the flagged cells."""
    parts = [_TOP.format(count=len(facts()))]
    for source in sources():
        own = tables(source.name)
        parts.append(f"\n## {source.name}\n\n{source.title}. {source.authors[0].upper()}{source.authors[1:]}; ")
        parts.append(f"{source.published}.\n\n| table | shows | data | network | dim | protocol | rows | numbers |\n")
        parts.append("|---|---|---|---|---|---|---|---|\n")
        parts += [_line(table) for table in own]
        notes = [f"- {table.label}. {note}\n" for table in own for note in table.notes]
        parts += ["\n", *notes] if notes else []
    parts.append("\n## Numbers with a flag\n\n| source | table | row | number | why |\n|---|---|---|---|---|\n")
    for table in tables():
        for fact in table.flagged:
            row = ", ".join(str(part) for part in (fact.method, fact.dim, fact.data, fact.metric) if part)
            parts.append(f"| {fact.source} | {table.label} | {row} | {fact.printed} | {fact.flag} |\n")
    return "".join(parts)


def _line(table: Table) -> str:
    cells = [
        table.label,
        table.caption,
        ", ".join(table.data),
        ", ".join(table.networks),
        ", ".join(map(str, table.dims)),
        ", ".join(table.protocols),
        str(table.rows),
        str(len(table.facts)),
    ]
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    print(page(), end="")

"""Finds published facts and tables; a misspelt name is an error that names the nearest right one."""

from __future__ import annotations

from collections.abc import Iterable

from nearkin import checks, losses
from nearkin.published.fact import PROTOCOLS, Fact
from nearkin.published.read import SOURCES, read
from nearkin.published.table import Source, Table

_ROMAN = {"I": 1, "II": 2}


def sources() -> list[Source]:
    """The documents.

    >>> [source.name for source in sources()]
    ['ranked_list', 'ranked_list_poster', 'deep_dive', 'unified_view', 'nra']
    """
    return [read(name)[0] for name in SOURCES]


def source_of(name: str) -> Source:
    """The document of that name."""
    if name not in SOURCES:
        raise ValueError(checks.unknown("source", name, SOURCES))
    return read(name)[0]


def tables(source: str | None = None) -> list[Table]:
    """Every table, or those of one source.

    >>> [table.number for table in tables("unified_view")]
    [1, 2, 3]
    """
    names = SOURCES if source is None else (source_of(source).name,)
    return [table for name in names for table in read(name)[1]]


def table_of(source: str, number: int | str) -> Table:
    """One table, by its number as a number or as printed.

    >>> table_of("nra", "II") is table_of("nra", 2)
    True
    """
    found = {table.number: table for table in tables(source)}
    text = str(number).strip()
    chosen = int(text) if text.isdecimal() else _ROMAN.get(text.upper(), 0)
    if chosen not in found:
        known = ", ".join(map(str, found))
        raise ValueError(f"table must be one of {known} in {source}, got {text!r}; choose one of these.")
    return found[chosen]


def facts(
    source: str | None = None,
    table: int | str | None = None,
    data: str | None = None,
    loss: str | None = None,
    network: str | None = None,
    dim: int | None = None,
    metric: str | None = None,
    protocol: str | None = None,
) -> list[Fact]:
    """The published numbers that fit, in the order of the tables; what is None is not asked about.

    >>> [found] = facts("ranked_list", 1, data="cub200", loss="ranked_list", dim=512, metric="recall@1")
    >>> found.method, found.value
    ('RLL-H', 57.4)
    """
    if table is not None and source is None:
        raise ValueError(f"table must come with the source it is in, got table {table!r} alone; name the source too.")
    where = tables(source) if table is None or source is None else [table_of(source, table)]
    every = [fact for entry in tables() for fact in entry.facts]
    _check("data", data, (fact.data for fact in every))
    _check("network", network, (fact.network for fact in every if fact.network))
    _check("protocol", protocol, PROTOCOLS)
    _check("metric", metric, (fact.metric for fact in every))
    _check("loss", loss, losses.LOSSES)
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int) or dim < 1):
        raise ValueError(f"dim must be a whole number of at least 1, got {dim!r}; change dim.")
    wanted = {
        "data": data,
        "loss": None if loss is None else losses.LOSSES[loss].name,  # "raw" is multi_similarity
        "network": network,
        "dim": dim,
        "metric": metric,
        "protocol": protocol,
    }
    asked = {name: value for name, value in wanted.items() if value is not None}
    return [
        fact
        for entry in where
        for fact in entry.facts
        if all(getattr(fact, name) == value for name, value in asked.items())
    ]


def _check(kind: str, name: str | None, known: Iterable[str]) -> None:
    if name is not None:
        options = set(known)
        if name not in options:
            raise ValueError(checks.unknown(kind, name, options))

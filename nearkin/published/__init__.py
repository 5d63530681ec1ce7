"""The results that were published, as facts: every table of results in the five documents nearkin implements.

``facts(data="cub200", loss="ranked_list", metric="recall@1")`` finds them; ``tables()`` lists the tables they come from.
The numbers stand in ``tables/*.csv`` as they were printed, what they are about in ``tables/*.toml``; doubtful, impossible
and misprinted cells are kept, with a flag that says why.
"""

from nearkin.published.attainable import attainable
from nearkin.published.fact import PROTOCOLS, Fact
from nearkin.published.find import facts, source_of, sources, table_of, tables
from nearkin.published.table import Source, Table

__all__ = [
    "PROTOCOLS",
    "Fact",
    "Source",
    "Table",
    "attainable",
    "facts",
    "source_of",
    "sources",
    "table_of",
    "tables",
]

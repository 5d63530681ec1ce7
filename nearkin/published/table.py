"""A published table: its caption, its notes and its facts."""

from __future__ import annotations

from dataclasses import dataclass

from nearkin.published.fact import Fact


@dataclass(frozen=True)
class Source:
    """A document: its short name, title, authors, and where it was published."""

    name: str
    title: str
    authors: str
    published: str


@dataclass(frozen=True)
class Table:
    """A table of a source, its facts in the order in which they are printed, row by row.

    ``label`` is its number as printed, ``caption`` says in our words what it shows, ``place`` is the page or section, and
    ``notes`` are sentences about how it is to be read and where the text around it disagrees. ``rows`` counts the lines of
    the CSV file, ``columns`` those of its columns that hold numbers; cells that were not reported are no facts.
    """

    source: str
    number: int
    label: str
    caption: str
    place: str
    notes: tuple[str, ...]
    rows: int
    columns: tuple[str, ...]
    facts: tuple[Fact, ...]

    @property
    def data(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(fact.data for fact in self.facts))

    @property
    def networks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(fact.network for fact in self.facts if fact.network))

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(sorted({fact.dim for fact in self.facts if fact.dim is not None}))

    @property
    def protocols(self) -> tuple[str, ...]:
        """Those of its own rows; quoted rows are of unknown protocol."""
        return tuple(dict.fromkeys(fact.protocol for fact in self.facts if not fact.quoted))

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(fact.metric for fact in self.facts))

    @property
    def flagged(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.flag)

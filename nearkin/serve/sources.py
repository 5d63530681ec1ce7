"""Whose queries can be looked at: runs given by `--run`, and losses of a benchmark by the first of their runs.

Each has a key that stands in addresses: ``run/NAME`` or ``bench/EXPERIMENT/LOSS``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nearkin import checks
from nearkin import results as files
from nearkin.results import Result
from nearkin.serve.folders import Folders
from nearkin.serve.images import Images, Library
from nearkin.serve.runs import Runs
from nearkin.serve.search import NotFoundError


@dataclass(frozen=True)
class Source:
    """A run whose answers were kept: its key, its name, what it belongs to, and its result with an absolute folder."""

    key: str
    name: str
    group: str
    result: Result

    @property
    def path(self) -> Path:
        return Path(self.result.folder)


class Sources:
    """All of them, and their images."""

    def __init__(self, runs: Runs | None, folders: Folders | None) -> None:
        self.runs, self.folders = runs, folders
        self.library = Library()

    def all(self) -> list[Source]:
        """Runs first, then the losses of each experiment as the board has them."""
        found = []
        if self.folders is not None:
            found += [Source(f"run/{name}", name, "Runs", self.folders.result(name)) for name in self.folders.paths]
        if self.runs is not None:
            bench = self.runs.bench
            for place, table in enumerate(table for table in bench.tables if table.labels):
                for at in table.order:
                    label = table.labels[at]
                    run = bench.counted(table, label)[0]
                    result = _absolute(run, bench.path(run))
                    found.append(Source(f"bench/{place}/{label}", label, table.name, result))
        return found

    def find(self, key: str) -> Source:
        kind, _, name = key.partition("/")
        if kind == "run" and self.folders is not None and name in self.folders.paths:  # asked for with every picture
            return Source(key, name, "Runs", self.folders.result(name))
        known = {source.key: source for source in self.all()}
        if key not in known:
            raise NotFoundError(checks.unknown("run", key, known))
        return known[key]

    def images(self, source: Source) -> Images:
        return self.library.of(source.path)

    def facts(self) -> dict[str, Any]:
        """What the page offers to choose from; ``asked`` says whether the answers to its queries were kept."""
        return {
            "sources": [
                {
                    "key": source.key,
                    "name": source.name,
                    "group": source.group,
                    "asked": (source.path / files.QUERIES).is_file(),
                    "trained": (source.path / "config.toml").is_file(),
                    "data": source.result.data,
                }
                for source in self.all()
            ]
        }


def _absolute(run: Result, path: Path) -> Result:
    return replace(run, folder=str(path.resolve()))

"""The command `nearkin tournament`: who wins, and is it more than chance."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from nearkin import checkpoint, config
from nearkin import results as files
from nearkin.tournament.diagram import svg
from nearkin.tournament.printed import printed
from nearkin.tournament.settle import judge, settle
from nearkin.tournament.show import shown
from nearkin.tournament.verdict import Verdict


@dataclass(frozen=True)
class Tournament:
    """Flags of ``nearkin tournament``."""

    results: str = config.option("", "folder of a benchmark, or its results.jsonl", positional=True, optional=True)
    published: str = config.option("", "judge published tables instead, such as deep_dive")
    tables: tuple[int, ...] = config.option(
        (), "which tables of the published source; of deep_dive 6 7 8 if not given, of others all", of=int
    )
    metric: str = config.option("recall@1", "the measure to rank by")
    protocol: str = config.option("", "which protocol to judge; the most careful one there if not given")
    each: bool = config.option(False, "print a table for every experiment, however many")
    json: bool = config.option(False, "print the verdict as JSON")
    svg: str = config.option("", "write a figure to this file")

    def __post_init__(self) -> None:
        config.check("tournament", self)
        if bool(self.results) == bool(self.published):
            came = f"results {self.results!r} and published {self.published!r}" if self.results else "neither"
            raise ValueError(
                f"give either the folder of a benchmark or --published, got {came}; "
                f"try nearkin tournament --published deep_dive."
            )
        if self.results and self.tables:
            raise ValueError(
                f"tables must come with --published, got tables {' '.join(map(str, self.tables))} with results "
                f"{self.results!r}; leave --tables out."
            )
        if self.published and self.protocol:
            raise ValueError(
                f"protocol must come with the folder of a benchmark, got {self.protocol!r} with published "
                f"{self.published!r}; pick tables of one protocol with --tables."
            )


def run(settings: Tournament) -> None:
    """Who wins, and is it more than chance: ranks, tests, intervals, and groups that cannot be told apart."""
    if settings.svg:
        checkpoint.check_file("svg", Path(settings.svg), ".svg")
    verdict, remarks = decide(settings)
    if settings.svg:
        checkpoint.replace(Path(settings.svg), svg(verdict).encode())
    for remark in remarks:
        print(f"nearkin tournament: {remark}", file=sys.stderr)
    if settings.json:
        print(json.dumps(verdict.record(), indent=1, allow_nan=False))
        return
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    print(shown(verdict, width, sys.stdout.isatty(), settings.each), end="")
    if settings.svg:
        print(f"\nFigure: {settings.svg}")


def decide(settings: Tournament) -> tuple[Verdict, list[str]]:
    """The verdict, and remarks on how the results were read."""
    if settings.published:
        return judge(printed(settings.published, settings.tables, settings.metric), settings.metric), []
    path = Path(settings.results)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = files.read(path)
    folder = path if path.is_dir() else path.parent
    verdict = settle(found, folder, settings.metric, protocol=settings.protocol)
    return verdict, [str(warning.message) for warning in caught]

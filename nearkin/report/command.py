"""The command `nearkin report`: one page that shows which loss is best, and everything behind it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from nearkin import checks, config
from nearkin.checks import Limit
from nearkin.config import option
from nearkin.report.bench import read
from nearkin.report.write import FORMATS, PAGE, write

WHOLE = Limit(low=0, whole=True)


@dataclass(frozen=True)
class Report:
    """Flags of ``nearkin report``."""

    results: str = option("", "folder of a benchmark, or its results.jsonl", positional=True)
    out: str = option("", "folder to write to; default: report, beside the results")
    title: str = option("", "title of the page")
    metric: str = option("recall@1", "the measure to rank by")
    pictures: str = option("auto", "show images of the test set where it can be read", ("auto", "none"))
    queries: int = option(8, "queries whose neighbours are shown", WHOLE)
    points: int = option(1500, "images on the map of the embedding; 0: no map", WHOLE)
    figures: str = option("svg,png", "formats of the figures as files, comma between; empty: none")

    def __post_init__(self) -> None:
        config.check("report", self)
        for name in self.formats:
            if name not in FORMATS:
                raise ValueError(checks.unknown("report: figures", name, FORMATS))

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.figures.split(",") if name.strip())


def run(settings: Report) -> None:
    """Write one page that shows which loss is best, by how much, how surely and at what cost, with figures and tables.

    nearkin report runs/birds --out report

    The page needs no network and opens from the disk. Images of some data sets may not be passed on: make a report that
    leaves your hands with --pictures none.
    """
    place = Path(settings.results)
    folder = place if place.is_dir() else place.parent
    out = Path(settings.out) if settings.out else folder / "report"
    bench = read(
        place,
        settings.metric,
        pictures=settings.pictures != "none",
        queries=settings.queries,
        points=settings.points,
        cache=out / "cache",
    )
    files, remarks = write(bench, out, settings.title, settings.formats)
    for remark in (*bench.remarks, *remarks):
        print(f"nearkin report: {remark}", file=sys.stderr)
    print(bench.verdict.sentence if bench.verdict is not None else bench.why)
    print(f"{len(files)} files in {out}; open {out / PAGE}")

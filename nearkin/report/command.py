"""The command `nearkin report`: one page that shows which loss is best, and everything behind it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearkin import checks, config
from nearkin.checks import Limit
from nearkin.config import option
from nearkin.report.bench import Bench, read
from nearkin.report.write import FORMATS, PAGE, write

WHOLE = Limit(low=0, whole=True)
PICTURES = ("auto", "none")


@dataclass(frozen=True)
class Report:
    """Flags of ``nearkin report``."""

    results: str = option("", "folder of a benchmark, or its results.jsonl", positional=True)
    out: str = option("", "folder to write to; default: report, beside the results")
    title: str = option("", "title of the page")
    metric: str = option("recall@1", "the measure to rank by")
    protocol: str = option("", "which protocol to judge; the most careful one there if not given")
    pictures: str = option("auto", "images of the test set, where it can be read; none; or FOLDER: of that benchmark")
    queries: int = option(8, "queries whose neighbours are shown", WHOLE)
    points: int = option(1500, "images on the map of the embedding; 0: no map", WHOLE)
    figures: str = option("svg,png", "comma-separated formats of the figures as files; empty: none")

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

    nearkin report bench/birds --out report

    nearkin report bench/birds --pictures bench/smoke

    nearkin report bench/birds --protocol test_feedback

    The page needs no network and opens from the disk. Images of some data sets may not be passed on: make a report that
    leaves your hands with --pictures none, or with the folder of another benchmark, whose images are shown instead.
    """
    bench, files = make(settings)
    print(bench.verdict.sentence if bench.verdict is not None else bench.why)
    print(files)


def make(settings: Report) -> tuple[Bench, str]:
    """Write the page; what it shows, and where which files are."""
    place = Path(settings.results)
    folder = place if place.is_dir() else place.parent
    out = Path(settings.out) if settings.out else folder / "report"
    shown = {"queries": settings.queries, "points": settings.points, "cache": out / "cache"}
    lender = None if settings.pictures in PICTURES else _lender(settings.pictures, settings.metric, shown)
    bench = read(
        place, settings.metric, settings.protocol, pictures=settings.pictures == "auto", lender=lender, **shown
    )
    files, remarks = write(bench, out, settings.title, settings.formats)
    for remark in (*bench.remarks, *remarks):
        print(f"nearkin report: {remark}", file=sys.stderr)
    return bench, f"{len(files)} files in {out}; open {out / PAGE}"


def _lender(folder: str, metric: str, shown: dict[str, Any]) -> Bench:
    """The benchmark whose images are shown instead of those of the results."""
    from nearkin.results import FILE

    place = Path(folder)
    if not (place.is_file() or (place / FILE).is_file()):
        raise ValueError(
            f"report: pictures must be auto, none or the folder of another benchmark, got {folder!r}; make one with "
            f"nearkin bench --smoke."
        )
    return read(place, metric, **shown)

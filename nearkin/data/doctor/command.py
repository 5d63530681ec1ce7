"""The command ``nearkin data check``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nearkin import checks, config
from nearkin.checkpoint import check_file
from nearkin.data.doctor.embedders import CHOICES
from nearkin.data.doctor.examine import examine, examine_splits
from nearkin.data.doctor.findings import Findings
from nearkin.data.doctor.sheet import format_of, save_sheet
from nearkin.data.doctor.show import Watching, report
from nearkin.data.folder import find_parts, folder
from nearkin.data.info import recognise
from nearkin.data.registry import entry_of, load
from nearkin.data.table import ImageTable, Splits

SERIOUS = 1
"""The exit code where a serious finding is among them."""


@dataclass(frozen=True)
class Check:
    """Flags of ``nearkin data check``."""

    path: str = config.option(
        "", "a folder per class, train/ and test/ with these, a CSV or Parquet table, or a benchmark", positional=True
    )
    data: str = config.option("", "read it as this data set, such as cub200 or folder, with its training and test part")
    sheet: str = config.option("", "draw a contact sheet of what was found into this image file")
    json: str = config.option("", "write all findings into this JSON file")
    features: str = config.option(
        "auto", "what finds images that look mislabelled; auto: the network if installed", CHOICES
    )
    examples: int = config.option(2, "examples of each finding in the table", checks.Limit(low=0, whole=True))
    each: int = config.option(14, "images of each finding on the contact sheet", checks.COUNT)
    workers: int = config.option(0, "processes that decode; 0: one per core", checks.Limit(low=0, whole=True))
    seed: int = config.option(0, "seed of what is drawn at random", checks.SEED)

    def __post_init__(self) -> None:
        config.check("check", self)


def check(settings: Check) -> int:
    """Examine a data set: broken, doubled, mislabelled-looking and odd images, and classes with too few.

    The exit code is 0 if nothing serious was found and 1 if something was: images that cannot be read, copies that
    are in both the training and the test part, or one picture under two class names.
    """
    # Better now than after minutes of work.
    for name, target in (("sheet", settings.sheet), ("json", settings.json)):
        if target:
            check_file(name, Path(target))
    if settings.sheet:
        format_of(Path(settings.sheet))
    begin = time.perf_counter()
    found, tables = examine_path(settings)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(report(found, settings.examples, colour=colour), end="")
    if found.findings and not settings.sheet:
        print("See the images with: --sheet sheet.png")
    if settings.sheet:
        save_sheet(found, tables, settings.sheet, settings.each)
        print(f"Contact sheet: {settings.sheet}")
    if settings.json:
        found.save(settings.json)
        print(f"Findings: {settings.json}")
    print(f"{time.perf_counter() - begin:.0f} s in all.")
    return SERIOUS if found.of_severity("serious") else 0


def examine_path(settings: Check) -> tuple[Findings, Mapping[str, ImageTable]]:
    """The findings, and the tables they are about by part."""
    splits, whole = _read(settings.path, settings.data)
    workers, embed, seed = settings.workers or None, settings.features, settings.seed
    with Watching() as progress:
        if whole:
            found = examine(splits.train, workers=workers, progress=progress, embed=embed, seed=seed)
            return replace(found, notes=splits.notes), {"": splits.train}
        found = examine_splits(splits, workers=workers, progress=progress, embed=embed, seed=seed)
        return found, {"train": splits.train, "test": splits.test}


def _read(path: str, name: str) -> tuple[Splits, bool]:
    """The data set, and whether its training part is all of it."""
    place, notes = Path(path).expanduser(), tuple[str, ...]()
    if not name and place.exists():
        name, layout = recognise(place)
        # A benchmark in plain class folders is read as any other folder is, so that nothing in it is passed over.
        name = "" if name == "folder" or layout == "class folders" else name
        notes = (f"Read as {name}, {layout}.",) if name else ()
    if name:
        entry = entry_of(name)
        options: dict[str, object] = {"check_counts": False} if entry.counts is not None else {}
        splits = load(name, place if entry.needs_root else None, **options)
        return replace(splits, notes=notes + splits.notes), False
    if place.is_dir() and find_parts(place) is not None:
        return folder(place, split="parts"), False
    splits = folder(place, split="all")
    # The note that every image is in both parts is about training, not about the images.
    return replace(splits, notes=splits.notes[:-1]), True

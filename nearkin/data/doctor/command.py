"""The command ``nearkin data check``."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nearkin import checks, config
from nearkin.data.doctor.atomic import check_target
from nearkin.data.doctor.embedders import CHOICES
from nearkin.data.doctor.examine import examine, examine_splits
from nearkin.data.doctor.findings import Findings
from nearkin.data.doctor.sheet import check_sheet, save_sheet
from nearkin.data.doctor.show import Watching, report
from nearkin.data.table import ImageTable, Splits

SERIOUS = 1
"""The exit code where a serious finding is among them."""


@dataclass(frozen=True)
class Check:
    """Flags of ``nearkin data check``."""

    path: str = config.option(
        "", "the folder of the data set: a folder per class, or train/ and test/ with these", positional=True
    )
    data: str = config.option(
        "", "read it as this data set, such as cub200, sop or mnist, with its training and test part"
    )
    sheet: str = config.option("", "draw a contact sheet of what was found into this image file")
    json: str = config.option("", "write all findings into this JSON file")
    features: str = config.option(
        "auto", "what finds images that look mislabelled; auto: the network if installed", CHOICES
    )
    examples: int = config.option(2, "examples of each finding in the table", checks.Limit(low=0, whole=True))
    each: int = config.option(14, "images of each finding on the contact sheet", checks.COUNT)
    workers: int = config.option(0, "processes that decode; 0: one per core", checks.Limit(low=0, whole=True))
    seed: int = config.option(0, "seed of what is drawn at random", checks.Limit(low=0, whole=True))

    def __post_init__(self) -> None:
        config.check("data check", self)


def check(settings: Check) -> int:
    """Examine a data set: broken, doubled, mislabelled-looking and odd images, and classes with too few.

    The exit code is 0 if nothing serious was found and 1 if something was: images that cannot be read, copies that
    are in both the training and the test part, or one picture under two class names.
    """
    # Better now than after minutes of work.
    if settings.sheet:
        check_sheet(Path(settings.sheet))
    if settings.json:
        check_target(Path(settings.json))
    begin = time.perf_counter()
    found, tables = examine_path(settings)
    print(report(found, settings.examples, colour=sys.stdout.isatty()), end="")
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
    splits, whole = _read(settings)
    with Watching() as progress:
        options = {"workers": settings.workers or None, "progress": progress, "embed": settings.features}
        if whole:
            found = examine(splits.train, seed=settings.seed, **options)  # type: ignore[arg-type]
            return replace(found, notes=splits.notes), {"": splits.train}
        found = examine_splits(splits, seed=settings.seed, **options)  # type: ignore[arg-type]
        return found, {"train": splits.train, "test": splits.test}


def _read(settings: Check) -> tuple[Splits, bool]:
    """The data set, and whether its training part is all of it."""
    from nearkin.data.folder import find_parts, folder
    from nearkin.data.registry import entry_of, load

    if not settings.data:
        place = Path(settings.path).expanduser()
        if place.is_dir() and find_parts(place) is not None:
            return folder(place, split="parts"), False
        splits = folder(place, split="all")
        # The note that every image is in both parts is about training, not about the images.
        return replace(splits, notes=splits.notes[:-1]), True
    entry = entry_of(settings.data)
    options: dict[str, object] = {"check_counts": False} if entry.counts is not None else {}
    return load(settings.data, settings.path if entry.needs_root else None, **options), False

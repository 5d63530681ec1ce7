"""Stanford Online Products: 120,053 photographs of 22,634 products from an auction site (Song et al. 2016)."""

from __future__ import annotations

import os
from pathlib import Path

from nearkin.data.counts import missing_files, settle
from nearkin.data.files import ListedFiles, natural, readable
from nearkin.data.layout import list_rows, locate, not_found, root_folder
from nearkin.data.table import ImageTable, Splits

LISTS = {"train": "Ebay_train.txt", "test": "Ebay_test.txt"}
HEADER = ["image_id", "class_id", "super_class_id", "path"]


def sop(root: str | os.PathLike[str], check_counts: bool = True) -> Splits:
    """Products: the official lists, 11,318 classes train (59,551 images), 11,316 test (60,502).

    ``root`` holds ``Stanford_Online_Products/`` or is it. A class is one product and its name is the official
    number; ``super_classes`` says what kind of thing it is, such as ``bicycle``.
    """
    folder = root_folder("sop", root)
    base = _base(folder)
    if base is None:
        raise not_found("sop", folder, "Stanford_Online_Products/ with Ebay_train.txt and Ebay_test.txt")
    files = ListedFiles(base)
    problems: list[str] = []
    train, test = (_read(base / name, files, problems) for name in LISTS.values())
    return settle("sop", folder, train, test, problems, check_counts)


def layout(root: Path) -> str | None:
    """How the copy in this folder is laid out, or None where it is none."""
    return None if _base(root) is None else "official archive"


def _base(root: Path) -> Path | None:
    return locate(root, lambda place: all((place / name).is_file() for name in LISTS.values()))


def _read(path: Path, files: ListedFiles, problems: list[str]) -> ImageTable:
    images: list[Path] = []
    classes: list[str] = []
    kinds: dict[str, str] = {}
    missing: list[str] = []
    for number, (_, label, _, listed) in enumerate(list_rows(path, len(HEADER))):
        if number == 0 and label == HEADER[1]:
            continue
        found = files.find(listed)
        if found is None:
            missing.append(readable(listed))
            continue
        images.append(found)
        classes.append(label)
        kinds[label] = readable(listed.partition("/")[0]).removesuffix("_final")
    if missing:
        problems.append(missing_files(missing, path.name))
    return ImageTable.of(images, classes, sorted(kinds, key=natural), super_classes=kinds)

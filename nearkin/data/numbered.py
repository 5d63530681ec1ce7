"""Class folders named ``NNN.Name``, with images of any format: how CUB-200-2011 comes, and others are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearkin import wording
from nearkin.data.files import image_extensions, images_below, naming, readable, subfolders
from nearkin.data.table import ImageTable

PATTERN = re.compile(r"([0-9]{1,3})[._ -](.+)")


@dataclass(frozen=True)
class Picture:
    """One image file and the official number of its class."""

    path: Path
    number: int


def numbered_folders(folder: Path) -> dict[int, list[str]]:
    """Folder names by the number they begin with; nothing where the folder has none."""
    found: dict[int, list[str]] = {}
    for name in subfolders(folder):
        match = PATTERN.fullmatch(name)
        if match:
            found.setdefault(int(match[1]), []).append(name)
    return found


def find_numbered(root: Path, inside: Sequence[str] = ()) -> Path | None:
    """The folder that holds numbered class folders: the root, one of the named ones in it, or its only folder."""
    places = [root, *(root / name for name in inside)]
    only = subfolders(root)
    if len(only) == 1:
        places += [root / only[0], root / only[0] / "images"]
    return next((place for place in places if place.is_dir() and numbered_folders(place)), None)


def read_numbered(name: str, folder: Path, classes: int) -> tuple[list[Picture], dict[int, str], list[str]]:
    """Every image of the numbered folders, the class names, and notes; images come by class, then by name."""
    extensions = image_extensions()
    pictures: list[Picture] = []
    names: dict[int, str] = {}
    others = broken = 0
    for number, folders in sorted(numbered_folders(folder).items()):
        if not 1 <= number <= classes:
            raise ValueError(
                f"{name}: class folders must be numbered from 1 to {classes}, got {readable(folders[0])} in {folder}; "
                f"pass the root of {name}, or use nearkin.data.folder for other images."
            )
        if len(folders) > 1:
            raise ValueError(
                f"{name}: each class number must have one folder, got {naming([readable(one) for one in folders])} "
                f"in {folder}; keep one of them."
            )
        found = images_below(folder / folders[0], extensions)
        names[number] = readable(folders[0])
        pictures += [Picture(path, number) for path in sorted(found.images, key=lambda path: (path.stem, path.name))]
        others, broken = others + found.others, broken + found.broken
    notes = []
    if others:
        one, several = "is no image and was", "are no images and were"
        files = wording.count(others, f"file in the class folders {one}", f"files in the class folders {several}")
        notes.append(f"{files} left out.")
    if broken:
        one, several = "link to an image leads nowhere and was", "links to images lead nowhere and were"
        notes.append(f"{wording.count(broken, one, several)} left out.")
    return pictures, names, notes


def halves_by_number(
    pictures: Sequence[Picture], names: Mapping[int, str], classes: int
) -> tuple[ImageTable, ImageTable]:
    """Classes up to the middle number train, the others test, whichever classes are missing."""
    tables = []
    for low, high in ((1, classes // 2), (classes // 2 + 1, classes)):
        chosen = [picture for picture in pictures if low <= picture.number <= high]
        present = sorted({picture.number for picture in chosen})
        tables.append(
            ImageTable.of(
                [picture.path for picture in chosen],
                [names[picture.number] for picture in chosen],
                [names[number] for number in present],
            )
        )
    return tables[0], tables[1]

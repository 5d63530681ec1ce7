"""CUB-200-2011: 11,788 photographs of 200 species of birds (Wah et al. 2011)."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from nearkin.data.class_sizes import CUB200
from nearkin.data.counts import by_class, settle
from nearkin.data.files import ListedFiles, naming, readable
from nearkin.data.layout import class_number, list_rows, locate, not_found, root_folder
from nearkin.data.numbered import Picture, find_numbered, halves_by_number, numbered_folders, read_numbered
from nearkin.data.table import Splits

CLASSES = 200
INSIDE = ("images", "CUB_200_2011", "CUB_200_2011/images")
WANTED = "CUB_200_2011/ with images.txt and image_class_labels.txt, or class folders such as 001.Black_footed_Albatross"


def cub200(root: str | os.PathLike[str], check_counts: bool = True) -> Splits:
    """Birds: classes 1 to 100 train (5,864 images), 101 to 200 test (5,924).

    ``root`` holds the official archive's ``CUB_200_2011/``, or is it, or holds class folders ``NNN.Name`` with
    images of any format. The official class numbers decide the halves. The archive's own ``train_test_split.txt``
    divides every class in two and is not used: retrieval is tested on classes that training never saw.

    Images come by class, then by file name, so that both layouts give the same rows.
    """
    folder = root_folder("cub200", root)
    official = _official(folder)
    if official is not None:
        pictures, names, problems = _read_lists(official)
        notes: list[str] = []
    else:
        plain = find_numbered(folder, INSIDE)
        if plain is None:
            raise not_found("cub200", folder, WANTED)
        pictures, names, notes = read_numbered("cub200", plain, CLASSES)
        problems = []
    sizes = Counter(picture.number for picture in pictures)
    published = {int(name[:3]): name for name in CUB200}
    # What is there counts under the published name, so that another spelling of a folder is no missing class.
    problems += by_class({published[number]: sizes[number] for number in sorted(sizes)}, CUB200)
    if names and not any(_plain(name) == _plain(published[number]) for number, name in names.items()):
        problems.insert(0, f"no class has a published name ({names[min(names)]} for {published[min(names)]})")
    train, test = halves_by_number(pictures, names, CLASSES)
    return settle("cub200", folder, train, test, problems, check_counts, notes)


def layout(root: Path) -> str | None:
    """How the copy in this folder is laid out, or None where it is none."""
    if _official(root) is not None:
        return "official archive"
    plain = find_numbered(root, INSIDE)
    if plain is None:
        return None
    birds = {_plain(name) for name in CUB200}
    found = [_plain(name) for names in numbered_folders(plain).values() for name in names]
    return "class folders" if sum(name in birds for name in found) * 2 > len(found) else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _official(root: Path) -> Path | None:
    def holds(place: Path) -> bool:
        # The images folder itself may be the root: its lists lie beside it.
        return (place / "images.txt").is_file() and (place / "image_class_labels.txt").is_file()

    beside = root.resolve().parent
    if root.name == "images" and holds(beside):
        return beside
    return locate(root, holds)


def _read_lists(base: Path) -> tuple[list[Picture], dict[int, str], list[str]]:
    """Images in the order of class and file name, class names, and what the lists name that is not there."""
    listed_labels, listed_names = base / "image_class_labels.txt", base / "classes.txt"
    labels = {image: class_number(listed_labels, word, CLASSES) for image, word in list_rows(listed_labels, 2)}
    names: dict[int, str] = {}
    if listed_names.is_file():
        for word, name in list_rows(listed_names, 2):
            names[class_number(listed_names, word, CLASSES)] = readable(name)
    files = ListedFiles(base / "images")
    pictures: list[Picture] = []
    missing: list[str] = []
    unlabelled: list[str] = []
    for image, listed in list_rows(base / "images.txt", 2):
        if image not in labels:
            unlabelled.append(readable(listed))
            continue
        number = labels[image]
        names.setdefault(number, readable(listed.partition("/")[0]))
        path = files.find(listed)
        if path is None:
            missing.append(readable(listed))
        else:
            pictures.append(Picture(path, number))
    pictures.sort(key=lambda picture: (picture.number, picture.path.stem, picture.path.name))
    problems = [f"{len(missing):,} listed files are missing, such as {naming(missing)}"] if missing else []
    if unlabelled:
        problems.append(f"image_class_labels.txt has no class for {naming(unlabelled)}")
    return pictures, names, problems

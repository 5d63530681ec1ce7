"""A folder per class: a person's own images, in any format that Pillow reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nearkin import checks, wording
from nearkin.data.files import (
    Found,
    entries,
    holds_image,
    image_extensions,
    images_below,
    naming,
    natural,
    readable,
    subfolders,
)
from nearkin.data.layout import root_folder
from nearkin.data.listing import CSV_ENDINGS, PARQUET_ENDINGS
from nearkin.data.parts import VALIDATION_NOTE, WORDS, Rows, halves, splits_of
from nearkin.data.table import Splits

SPLITS = ("auto", "parts", "halves", "all")


def folder(root: str | os.PathLike[str], split: str = "auto", test_share: float = 0.5) -> Splits:
    """Your own images: each folder in ``root`` is a class, and every image at any depth inside belongs to it.

    ``split`` says what trains and what tests:

    - ``"parts"``: ``root`` holds ``train/`` and ``test/`` (or ``val/``), each with a folder per class. Classes that are
      in both keep one number, and ``disjoint`` is False;
    - ``"halves"``: the first classes in natural order train and the last ``test_share`` of them test;
    - ``"all"``: every image is in both parts, to train on all there is; the test then says nothing about new classes;
    - ``"auto"``: parts where ``root`` is laid out so, else halves.

    Hidden files, other files and links that lead nowhere are left out and counted in ``notes``.
    """
    checks.setting("folder", "split", split, SPLITS)
    _no_table(Path(root).expanduser())
    base = root_folder("folder", root)
    extensions = image_extensions()
    parts = find_parts(base)
    if split == "parts" and parts is None:
        raise ValueError(
            f"folder: root must hold train/ and test/ with a folder per class for split='parts', got "
            f"{naming([readable(name) for name in subfolders(base)]) or 'no folder'} in {base}; "
            f"pass split='halves' (--data-settings split=halves) to split by class."
        )
    notes: list[str] = []
    if parts is not None and split in ("auto", "parts"):
        train = _read(base / parts["train"], extensions, notes)
        test = _read(base / parts["test"], extensions, notes)
        if "unused" in parts:
            notes.append(f"{parts['unused']}/ was left out: {VALIDATION_NOTE}.")
        if beside := [readable(name) for name in subfolders(base) if name not in parts.values()]:
            notes.append(f"{naming(beside)} beside the parts {'hold' if len(beside) > 1 else 'holds'} no image.")
        for part, rows in ((parts["train"], train), (parts["test"], test)):
            if not rows.images:
                raise ValueError(f"folder: {base / part} must hold images in a folder per class, got none; add some.")
        return splits_of("folder", train, test, notes)
    rows = _read(base, extensions, notes)
    if not rows.images:
        loose = images_below(base, extensions).images
        hint = (
            f"{wording.count(len(loose), 'image lies', 'images lie')} directly in it: "
            f"move those of each class into a folder of its own"
            if loose
            else "check the path"
        )
        raise ValueError(f"folder: root must hold a folder of images per class, got none in {base}; {hint}.")
    notes += _called_parts(rows.classes)
    if split == "all":
        notes.append("every image is in both parts: the test says nothing about classes that training never saw.")
        both = splits_of("folder", rows, rows)
        return Splits(both.train, both.test, "folder", disjoint=False, notes=tuple(notes))
    return splits_of("folder", *halves("folder", rows, test_share), notes)


def _no_table(root: Path) -> None:
    """Raise where the root is a table, which is a data set of its own."""
    if root.suffix.lower() in (*CSV_ENDINGS, *PARQUET_ENDINGS) and root.is_file():
        raise ValueError(f"folder: root must be a folder, got the table {root}; read it with --data table.")


def find_parts(base: Path) -> dict[str, str] | None:
    """The folder names of the parts, or None where the folders are classes.

    Folders called train and test are parts only if nothing but parts lies beside them, folders without images aside,
    and they hold folders themselves: trains may well be a class next to cars.
    """
    names = subfolders(base)
    found: dict[str, str] = {}
    for kind, words in WORDS.items():
        matching = [name for name in names if name.casefold() in words]
        if len(matching) > 1:
            return None
        if matching:
            found[kind] = matching[0]
    if "train" not in found or len(found) < 2 or not all(subfolders(base / name) for name in found.values()):
        return None
    extensions, parts = image_extensions(), set(found.values())
    if any(holds_image(base / name, extensions) for name in names if name not in parts):
        return None
    if "test" not in found:
        found["test"] = found.pop("val")
    elif "val" in found:
        found["unused"] = found.pop("val")
    return found


def _called_parts(classes: Sequence[str]) -> list[str]:
    """A doubt where classes are called as parts are."""
    kinds = {word: kind for kind, words in WORDS.items() for word in words}
    called = sorted({name for name in classes if name.casefold() in kinds}, key=natural)
    if len({kinds[name.casefold()] for name in called}) < 2:
        return []
    return [
        f"{naming(called)} were taken as classes, not as parts: parts hold a folder per class each, and no other folder "
        f"with images lies beside them."
    ]


def _read(base: Path, extensions: frozenset[str], notes: list[str]) -> Rows:
    """Every image below the class folders of ``base``, in natural order."""
    images: list[Path] = []
    classes: list[str] = []
    empty: list[str] = []
    others = broken = 0
    for name in subfolders(base):
        found: Found = images_below(base / name, extensions)
        others, broken = others + found.others, broken + found.broken
        images += found.images
        classes += [readable(name)] * len(found.images)
        if not found.images:
            empty.append(readable(name))
    loose = [entry for entry in entries(base) if not entry.is_dir()]
    if loose:
        notes.append(_left_out(len(loose), "file lies", "files lie", f"in {base} outside any class folder"))
    if others:
        notes.append(
            _left_out(others, f"file below {base} is", f"files below {base} are", "no image" + "s" * (others > 1))
        )
    if broken:
        notes.append(_left_out(broken, f"link below {base} leads", f"links below {base} lead", "nowhere"))
    if empty:
        folders = wording.count(
            len(empty), "folder holds no image and is no class", "folders hold no image and are no classes"
        )
        notes.append(f"{folders}: {naming(empty)}.")
    return Rows(images, classes)


def _left_out(number: int, one: str, several: str, rest: str) -> str:
    """A sentence about so many things that were left out."""
    return f"{wording.count(number, one, several)} {rest} and {'was' if number == 1 else 'were'} left out."

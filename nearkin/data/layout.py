"""Where things lie below the root that a person passes: the folder itself, its parent, or the one inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from nearkin.data.files import entries, naming, readable, subfolders

ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip")


def root_folder(name: str, root: str | os.PathLike[str]) -> Path:
    """The root as a folder that exists."""
    folder = Path(root).expanduser()
    if not folder.exists():
        raise ValueError(f"{name}: root must be a folder, got {folder}, which does not exist; check the path.")
    if not folder.is_dir():
        hint = "unpack it first" if is_archive(folder) else "pass the folder that holds the images"
        raise ValueError(f"{name}: root must be a folder, got the file {folder}; {hint}.")
    return folder


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES)


def archives_in(folder: Path) -> list[str]:
    """Names of the archives that lie in a folder, not yet unpacked perhaps."""
    return [entry.name for entry in entries(folder) if entry.is_file() and is_archive(Path(entry.name))]


def places(root: Path) -> Iterator[Path]:
    """The root, then each folder in it: where a layout's own lists may lie."""
    yield root
    for name in subfolders(root):
        yield root / name


def locate(root: Path, holds: Callable[[Path], bool]) -> Path | None:
    """The first of the places of which ``holds`` is true."""
    return next((place for place in places(root) if holds(place)), None)


def not_found(name: str, root: Path, wanted: str) -> ValueError:
    """The error for a root in which no known layout can be seen."""
    packed = archives_in(root)
    if packed:
        return ValueError(
            f"{name}: root must hold {wanted}, got only packed archives in {root} ({naming(packed)}); "
            f"unpack them first, with nearkin.data.extract(archive, folder) or with tar."
        )
    inside = [readable(entry.name) + "/" * entry.is_dir() for entry in entries(root)]
    came = naming(inside) if inside else "an empty folder"
    return ValueError(
        f"{name}: root must hold {wanted}, got {came} in {root}; pass the folder the archive was unpacked in, "
        f"or run nearkin data get {name} --root DIR."
    )


def list_rows(path: Path, words: int, skip: int = 0) -> Iterator[list[str]]:
    """The lines of an official list, each split into ``words`` words; empty lines are passed over."""
    # A name that is no text in this encoding must still lead to its file.
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, start=1):
            row = line.split(maxsplit=words - 1)
            if number <= skip or not row:
                continue
            if len(row) != words:
                raise ValueError(
                    f"{path}, line {number}, must have {words} words, got {line.strip()[:60]!r}; "
                    f"unpack the list again from its archive."
                )
            row[-1] = row[-1].rstrip()
            yield row


def class_number(path: Path, word: str, highest: int) -> int:
    """A class number from an official list."""
    if not (word.isascii() and word.isdigit() and 1 <= int(word) <= highest):
        raise ValueError(f"classes in {path} must be numbers from 1 to {highest}, got {word!r}; unpack the list again.")
    return int(word)

"""Image files in folders: which files count as images, in which order they come, and which listed ones are there.

Nothing here opens an image; the ending of a name decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

STUBS = frozenset({"BUFR", "GRIB", "HDF5", "MPEG", "WMF"})
"""Formats that Pillow recognises but cannot turn into pixels by itself."""

PLATFORM_FOLDERS = frozenset({"__MACOSX", "@eaDir", "System Volume Information", "$RECYCLE.BIN"})
"""Folders that operating systems leave behind; they hold no data."""


def image_extensions() -> frozenset[str]:
    """The endings of the formats that Pillow reads, in lower case, with those that plugins have added.

    >>> {".jpg", ".png", ".webp"} <= image_extensions(), ".pdf" in image_extensions()
    (True, False)
    """
    from PIL import Image

    known = Image.registered_extensions()
    readable = Image.OPEN.keys() - STUBS
    # A picture with several frames from one camera is opened as JPEG.
    return frozenset(ending for ending, kind in known.items() if kind in readable) | {".mpo"}


def natural(name: str) -> tuple[list[str | int], str]:
    """A sort key in which numbers inside names count as numbers.

    >>> sorted(["class10", "class2", "Class1"], key=natural)
    ['Class1', 'class2', 'class10']
    """
    # Pieces alternate between text and digits, so equal places always hold equal types.
    pieces = re.split(r"([0-9]+)", name.casefold())
    return [int(piece) if place % 2 else piece for place, piece in enumerate(pieces)], name


def readable(name: str) -> str:
    """A file name as text that can be printed and written, whatever bytes it has on disk."""
    return os.fsencode(name).decode("utf-8", "replace")


def naming(names: Sequence[str], limit: int = 3) -> str:
    """The first few names, then how many more there are.

    >>> naming(["a", "b", "c", "d", "e"]), naming(["a", "b"])
    ('a, b, c and 2 more', 'a and b')
    """
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def hidden(name: str) -> bool:
    return name.startswith(".") or name in PLATFORM_FOLDERS


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder, hidden things left out, in natural order."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not hidden(entry.name)), key=lambda entry: natural(entry.name))
    except PermissionError as error:
        raise ValueError(f"folder {folder} must be readable, got a refusal; change its permissions.") from error


def subfolders(folder: Path) -> list[str]:
    """Names of the folders in a folder, links to folders included, in natural order."""
    return [entry.name for entry in entries(folder) if entry.is_dir()]


@dataclass(frozen=True)
class Found:
    """The images below a folder, and how many other files and broken links there are."""

    images: tuple[Path, ...]
    others: int = 0
    broken: int = 0


def images_below(folder: Path, extensions: frozenset[str]) -> Found:
    """Every image at any depth below ``folder``; links are followed, a link back to a parent is not."""
    images: list[Path] = []
    others = broken = 0
    for entry in _walk(folder, frozenset()):
        image = os.path.splitext(entry.name)[1].lower() in extensions
        if not entry.is_file():
            broken, others = broken + image, others + (not image)
        elif image:
            images.append(Path(entry.path))
        else:
            others += 1
    return Found(tuple(images), others, broken)


def holds_image(folder: Path, extensions: frozenset[str]) -> bool:
    """Whether an image lies at any depth below ``folder``; looks no further than the first."""
    return any(
        os.path.splitext(entry.name)[1].lower() in extensions and entry.is_file()
        for entry in _walk(folder, frozenset())
    )


def pictures(path: Path) -> tuple[Path, ...]:
    """Every image at or below a path, labels aside: a folder's images at any depth, or the one file itself."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise ValueError(f"path must be a folder of images or an image, got {path}, which does not exist; check it.")
    found = images_below(path, image_extensions()).images
    if not found:
        raise ValueError(f"path must hold images, got none in {path}; pass a folder with images in it.")
    return found


def _walk(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[os.DirEntry[str]]:
    """Files below a folder, those of the folder itself first."""
    place = os.stat(folder)
    identity = (place.st_dev, place.st_ino)
    if identity in above:
        return
    below = []
    for entry in entries(folder):
        if entry.is_dir():
            below.append(entry.path)
        else:
            yield entry
    for path in below:
        yield from _walk(Path(path), above | {identity})


class ListedFiles:
    """Finds files that a list names, reading each folder once instead of asking for each file.

    A file that was stored again in another image format (``.webp`` for ``.jpg``) is found under its stem.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self._extensions = image_extensions()
        self._folders: dict[str, tuple[frozenset[str], dict[str, str]]] = {}

    def find(self, listed: str) -> Path | None:
        """The file under this name relative to the base, or None."""
        folder, _, name = listed.rpartition("/")
        names, by_stem = self._read(folder)
        if name in names:
            return self.base / listed
        other = by_stem.get(os.path.splitext(name)[0])
        return None if other is None else self.base / folder / other

    def _read(self, folder: str) -> tuple[frozenset[str], dict[str, str]]:
        if folder not in self._folders:
            try:
                names = frozenset(os.listdir(self.base / folder))
            except OSError:
                names = frozenset()
            stems = {}
            for name in sorted(names):
                stem, ending = os.path.splitext(name)
                if ending.lower() in self._extensions:
                    stems[stem] = name
            self._folders[folder] = (names, stems)
        return self._folders[folder]

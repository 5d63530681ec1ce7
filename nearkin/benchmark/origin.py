"""What a run begins with, known by what it is and not by where it lies; somebody's own images by where they lie."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

from nearkin.train.settings import Train

OWN = ("folder", "table")
"""Data that is only told apart by its place; every other name stands for one published set."""


def origin(settings: Train, sums: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the id of a run holds besides its settings; ``sums``: those of weights whose files may be gone by now."""
    found = {}
    if settings.data in OWN and settings.root:
        found["root"] = str(Path(settings.root).resolve())
    mark = (sums or {}).get(settings.weights) or weights(settings.weights)
    if mark:
        found["weights"] = mark
    return found


def weights(given: str) -> str:
    """The sum of a file of weights; nothing for what is no file, such as "package"."""
    path = Path(given)
    if not given or not path.is_file():
        return ""
    at = path.stat()
    return _sum(str(path.resolve()), at.st_size, at.st_mtime_ns)


@functools.lru_cache
def _sum(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()[:16]

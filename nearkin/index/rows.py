"""What an index knows about an image besides its vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload


@dataclass(frozen=True)
class Row:
    """An image of an index: its number for life, where it lies, its class ("" if unknown), size and time of change."""

    id: int
    path: str
    label: str = ""
    bytes: int = 0
    changed: int = 0

    def same_file(self, other: Row) -> bool:
        """Whether the file has not changed since."""
        return (self.path, self.bytes, self.changed) == (other.path, other.bytes, other.changed)


class Rows(Sequence[Row]):
    """Rows of a segment in columns, each made when asked for: objects for all images of a large index would make Python's
    search for garbage, which looks at every one of them, a tenth of a second long in the middle of a query."""

    def __init__(self, entries: Sequence[Sequence[Any]]) -> None:
        columns: Any = zip(*entries, strict=True) if entries else ([] for _ in range(5))
        self.ids, self.paths, self.labels, self.bytes, self.changed = (list(column) for column in columns)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        return Row(self.ids[place], self.paths[place], self.labels[place], self.bytes[place], self.changed[place])


def number_of(word: str) -> int | None:
    """The id that a word of a person means; None where it means a file or a folder, which may have a number for a name."""
    return int(word) if word.isdecimal() and not Path(word).exists() else None


def row_of(path: Path, root: Path) -> Row:
    """The row of a file below ``root``, which has no number yet; the first folder on the way names its class."""
    found = path.stat()
    inside = path.relative_to(root).parts if path != root and path.is_relative_to(root) else (path.name,)
    label = inside[0] if len(inside) > 1 else ""
    return Row(-1, str(path), label, found.st_size, found.st_mtime_ns)

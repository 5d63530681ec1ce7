"""What an index knows about an image besides its vector."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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


def row_of(path: Path, root: Path, number: int = -1) -> Row:
    """The row of a file below ``root``; the first folder on the way names its class."""
    found = path.stat()
    inside = path.relative_to(root).parts if path != root and path.is_relative_to(root) else (path.name,)
    label = inside[0] if len(inside) > 1 else ""
    return Row(number, str(path), label, found.st_size, found.st_mtime_ns)

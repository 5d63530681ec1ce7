"""A part of an index that is written once and never changed: vectors, rows and thumbnails of some images.

A folder with ``vectors.safetensors`` (vectors (n, dim) float32, numbers (n,), offsets (n + 1,)), ``rows.json`` and
``thumbnails.bin``, in which thumbnail i lies between offsets i and i + 1. The manifest of the index has their checksums.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checkpoint
from nearkin.index.rows import Row, Rows

FILES = ("vectors.safetensors", "rows.json", "thumbnails.bin")


def write(
    folder: Path, vectors: NDArray[np.float32], rows: Sequence[Row], thumbnails: Sequence[bytes]
) -> dict[str, str]:
    """Write a segment; returns the checksums of its files. The folder appears whole or not at all."""
    from safetensors.numpy import save

    working = folder.with_name(f".writing-{folder.name}")
    shutil.rmtree(working, ignore_errors=True)
    working.mkdir(parents=True)
    offsets = np.cumsum([0, *map(len, thumbnails)], dtype=np.int64)
    arrays: dict[str, Any] = {
        "vectors": np.ascontiguousarray(vectors, np.float32),
        "numbers": np.array([row.id for row in rows], np.int64),
        "offsets": offsets,
    }
    plain = [[row.id, row.path, row.label, row.bytes, row.changed] for row in rows]
    contents = (save(arrays), json.dumps(plain).encode(), b"".join(thumbnails))
    sums = {name: checkpoint.write(working / name, content) for name, content in zip(FILES, contents, strict=True)}
    checkpoint.flush(working)
    shutil.rmtree(folder, ignore_errors=True)  # of a writer that was killed before it named it in the manifest
    working.rename(folder)
    checkpoint.flush(folder.parent)
    return sums


class Segment:
    """An open segment: vectors stay in the file until they are read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        arrays = _mapped(folder / "vectors.safetensors")
        self.vectors: NDArray[np.float32] = arrays["vectors"]
        self.numbers: NDArray[np.int64] = arrays["numbers"]
        self.offsets: NDArray[np.int64] = arrays["offsets"]
        self.rows = Rows(json.loads((folder / "rows.json").read_bytes()))

    def __len__(self) -> int:
        return len(self.numbers)

    def thumbnail(self, place: int) -> bytes:
        with (self.folder / "thumbnails.bin").open("rb") as file:
            begin, end = int(self.offsets[place]), int(self.offsets[place + 1])
            file.seek(begin)
            return file.read(end - begin)


def verify(folder: Path, sums: dict[str, str]) -> None:
    """Raise unless every file is what was written."""
    for name, expected in sums.items():
        path = folder / name
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
        if found != expected:
            raise ValueError(
                f"{path} must be what was written, got a checksum of {found[:12]} for {expected[:12]}; "
                f"restore it from a copy, or build the index again."
            )


def _mapped(path: Path) -> dict[str, Any]:
    """The arrays of a safetensors file, mapped, not copied; the file does not change whatever is done with them."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    kinds = {"F32": np.float32, "I64": np.int64}
    found = {}
    for name, facts in header.items():
        if name == "__metadata__":
            continue
        begin, end = facts["data_offsets"]
        kind = kinds[facts["dtype"]]
        if begin == end:
            found[name] = np.empty(facts["shape"], kind)
        else:
            found[name] = np.memmap(path, kind, "c", 8 + length + begin, tuple(facts["shape"]))
    return found

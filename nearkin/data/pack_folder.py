"""How a pack lies in its folder, so that a reader finds the old one or the new one, and never half of one.

Three files: ``index.json`` (names, bad images, fingerprint, which other files belong to it), ``arrays-*.safetensors``
(where each image lies, its height and width, labels, query, row in the table) and ``pixels-*.bin`` (the images one after
the other, row by row, red green blue). The data files have a new name each time they are written and the index is
replaced last, in one step: an interrupted build leaves nothing that looks finished.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearkin import locks

if TYPE_CHECKING:
    from nearkin.data.pack import Pack

VERSION = 1
"""Raised when the same sources would give other pixels or other files; older packs are then built again."""

ARRAYS = ("offset", "height", "width", "labels", "rows")
DATA_FILES = ("pixels-*.bin", "arrays-*.safetensors", ".building-*")


def read(folder: Path) -> tuple[dict[str, Any], str] | None:
    """The fields of the pack in a folder and the name of its file of pixels, or None if there is none; ValueError if it is
    damaged."""
    for _ in range(10):
        try:
            text = (folder / "index.json").read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return _load(folder, text)
        except FileNotFoundError:
            continue  # replaced by a newer pack since the index was read
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(
                f"the pack in {folder} must be whole, got damage ({error}); pack the images again."
            ) from error
    raise ValueError(f"the pack in {folder} must be whole, got files missing; pack the images again.")


def _load(folder: Path, text: bytes) -> tuple[dict[str, Any], str]:
    from safetensors.numpy import load

    index = json.loads(text)
    if index["format"] != "nearkin pack" or index["version"] != VERSION:
        raise ValueError(f"version {index['version']} instead of {VERSION}")
    content = (folder / index["arrays"]).read_bytes()
    if checksum(content) != index["arrays_sha256"]:
        raise ValueError(f"{index['arrays']} has another checksum")
    arrays = load(content)
    pixels = np.memmap(folder / index["pixels"], np.uint8, "r")
    if len(pixels) != index["bytes"]:
        raise ValueError(f"{index['pixels']} has {len(pixels):,} bytes instead of {index['bytes']:,}")
    found = {name: arrays[name] for name in ARRAYS} | {
        "pixels": pixels,
        "query": arrays.get("query"),
        "class_names": tuple(index["class_names"]),
        "super_classes": tuple(index["super_classes"]),
        "names": tuple(index["names"]),
        "bad": tuple((name, reason) for name, reason in index["bad"]),
        "digest": index["digest"],
        "checksum": index["pixels_sha256"],
    }
    return found, index["pixels"]


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[bool]:
    """Only one process at a time gets past here; False where the system has no locks, which costs double work only."""
    with open(folder / ".lock", "a") as file:
        try:
            held = locks.take(file)
        except (ImportError, OSError):
            held = False
        yield held


def make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"folder must be one that can be made, got {folder} ({error.strerror}); choose another."
        ) from error


def publish(folder: Path, pixels: str, made: Pack) -> None:
    """Write everything but the pixels; with the index in place the pack is finished."""
    from safetensors.numpy import save

    arrays = {name: getattr(made, name) for name in ARRAYS}
    if made.query is not None:
        arrays["query"] = made.query
    content = save(arrays)
    name = f"arrays-{secrets.token_hex(4)}.safetensors"
    index = {
        "format": "nearkin pack",
        "version": VERSION,
        "digest": made.digest,
        "images": len(made),
        "bytes": int((made.height[-1].astype(np.int64) * made.width[-1] * 3) + made.offset[-1]),
        "pixels": pixels,
        "pixels_sha256": made.checksum,
        "arrays": name,
        "arrays_sha256": checksum(content),
        "class_names": made.class_names,
        "super_classes": made.super_classes,
        "names": made.names,
        "bad": made.bad,
    }
    _write(folder / name, content)
    _write(folder / "index.json", json.dumps(index, indent=1).encode())


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f".building-{secrets.token_hex(4)}")
    try:
        with open(partial, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def clean(folder: Path) -> None:
    """Remove what interrupted builds and earlier packs left. Whoever calls holds the lock."""
    try:
        index = json.loads((folder / "index.json").read_bytes())
        kept = {index["pixels"], index["arrays"]}
    except (OSError, ValueError, KeyError, TypeError):
        kept = set()
    for pattern in DATA_FILES:
        for path in folder.glob(pattern):
            if path.name not in kept:
                with contextlib.suppress(OSError):  # Windows keeps files that someone reads
                    path.unlink()


def checksum(content: Any) -> str:
    return hashlib.sha256(content).hexdigest()

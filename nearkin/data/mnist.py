"""MNIST: 70,000 handwritten digits (LeCun et al. 1998)."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearkin.data.counts import settle
from nearkin.data.layout import locate, not_found, root_folder
from nearkin.data.table import ImageTable, Splits

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
SIDE = 28
DIGITS = tuple(str(digit) for digit in range(10))


def mnist(root: str | os.PathLike[str], check_counts: bool = True) -> Splits:
    """Digits: the official parts, 60,000 images train and 10,000 test. Both hold all ten classes.

    ``root`` holds the four official files, packed (``.gz``) or not, or a folder such as ``MNIST/raw`` that does. The
    images are arrays in memory, (n, 28, 28) of uint8.
    """
    folder = root_folder("mnist", root)
    base = _base(folder)
    if base is None:
        raise not_found("mnist", folder, "train-images-idx3-ubyte.gz and its three companions")
    train, test = (_part(base, *names) for names in FILES.values())
    return settle("mnist", folder, train, test, check_counts=check_counts, disjoint=False)


def layout(root: Path) -> str | None:
    """How the copy in this folder is laid out, or None where it is none."""
    return None if _base(root) is None else "official idx files"


def files(root: Path) -> list[Path]:
    """The files that are there, of the four."""
    base = _base(root)
    if base is None:
        return []
    found = [_file(base, name) for names in FILES.values() for name in names]
    return [path for path in found if path is not None]


def _base(root: Path) -> Path | None:
    def holds(place: Path) -> bool:
        return any(_file(place, name) is not None for names in FILES.values() for name in names)

    return locate(root, holds) or (root / "MNIST" / "raw" if holds(root / "MNIST" / "raw") else None)


def _file(base: Path, name: str) -> Path | None:
    dotted = name.replace("-idx", ".idx")
    return next((base / one for one in (f"{name}.gz", name, f"{dotted}.gz", dotted) if (base / one).is_file()), None)


def _part(base: Path, images_name: str, labels_name: str) -> ImageTable:
    paths = []
    for name in (images_name, labels_name):
        path = _file(base, name)
        if path is None:
            raise ValueError(f"mnist: root must hold four files, got no {name}.gz in {base}; fetch that file.")
        paths.append(path)
    images, labels = _read(paths[0], 3), _read(paths[1], 1)
    if images.shape[1:] != (SIDE, SIDE):
        raise ValueError(f"mnist: {paths[0]} must hold images of 28 x 28, got {images.shape[1:]}; fetch it again.")
    if len(images) != len(labels):
        raise ValueError(
            f"mnist: {paths[0].name} and {paths[1].name} must have one label per image, got {len(images)} images and "
            f"{len(labels)} labels in {base}; fetch both again."
        )
    if labels.size and labels.max() > 9:
        raise ValueError(f"mnist: {paths[1]} must hold digits, got {labels.max()}; fetch it again.")
    return ImageTable(images, labels.astype(np.int64), DIGITS)


def _read(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """An idx file of bytes: two zeros, type 8, the number of dimensions, each size as four bytes, the values."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"mnist: {path} must be a whole gzip file, got {error}; fetch it again.") from error
    start = 4 + 4 * dimensions
    if len(content) < start or content[:4] != bytes((0, 0, 8, dimensions)):
        raise ValueError(
            f"mnist: {path} must begin as an idx file of {dimensions} dimension{'s' * (dimensions > 1)}, got "
            f"{content[:4].hex() or 'nothing'}; fetch it again."
        )
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", dimensions, 4))
    size = int(np.prod(shape, dtype=np.int64))
    if len(content) - start != size:
        raise ValueError(
            f"mnist: {path} must hold {size:,} values as its head says, got {len(content) - start:,}; fetch it again."
        )
    # A copy: what lies over bytes cannot be written to, and tensors that share it warn.
    return np.array(np.frombuffer(content, np.uint8, offset=start)).reshape(shape)

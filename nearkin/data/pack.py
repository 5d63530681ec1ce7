"""Decode a data set once: all its images in one memory-mapped file of 8-bit pixels, read by every later run.

How it lies in a folder: ``pack_folder.py``.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearkin import checks, wording
from nearkin.data import pack_folder
from nearkin.data.decode import BadImage, Bytes, shrink
from nearkin.data.decoders import Images, read_images
from nearkin.data.table import ImageTable

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Pack:
    """Decoded images with labels.

    - ``pixels`` (bytes,) uint8: all images; image i starts at ``offset[i]`` and has ``height[i]`` x ``width[i]`` x 3;
    - ``labels``, ``class_names``, ``query``, ``super_classes`` as in ``ImageTable``; a class may have lost images;
    - ``rows`` (n,): the row of each image in the table it came from; ``names`` (n,);
    - ``bad``: (name, reason) of every image that was left out;
    - ``digest``: fingerprint of the sources, the size and the format.
    """

    pixels: Bytes
    offset: NDArray[np.int64]
    height: NDArray[np.int32]
    width: NDArray[np.int32]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    query: NDArray[np.bool_] | None
    rows: NDArray[np.int64]
    names: tuple[str, ...]
    bad: tuple[tuple[str, str], ...]
    digest: str
    super_classes: tuple[str, ...] = ()
    checksum: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        left_out = f", {len(self.bad)} left out" if self.bad else ""
        images, classes = wording.count(len(self), "image"), wording.count(len(self.class_names), "class", "classes")
        return f"Pack({images}, {classes}, {self.nbytes / 1e6:,.1f} MB{left_out})"

    @property
    def nbytes(self) -> int:
        """Bytes of all pixels, those that a selection leaves out included."""
        return int(self.pixels.nbytes)

    def image(self, row: int) -> Bytes:
        """One image (height, width, 3), not copied."""
        start, height, width = int(self.offset[row]), int(self.height[row]), int(self.width[row])
        return self.pixels[start : start + height * width * 3].reshape(height, width, 3)

    def select(self, rows: Sequence[int] | NDArray[Any]) -> Pack:
        """These images in this order; pixels are shared, labels and class names stay.

        >>> table = ImageTable(np.zeros((3, 2, 2), np.uint8), np.array([0, 1, 1]), ("cat", "dog"))
        >>> part = pack(table, None).select([2, 0])
        >>> part.labels, part.rows
        (array([1, 0]), array([2, 0]))
        """
        index = np.asarray(rows)
        index = np.flatnonzero(index) if index.dtype == bool and len(index) == len(self) else index.astype(np.int64)
        if len(index) and not 0 <= index.min() <= index.max() < len(self):
            raise ValueError(
                f"rows must lie between 0 and {len(self) - 1}, the images of this pack, got values from {index.min()} "
                f"to {index.max()}; select by row of the pack."
            )
        return replace(
            self,
            **{name: getattr(self, name)[index] for name in pack_folder.ARRAYS},
            query=None if self.query is None else self.query[index],
            names=tuple(self.names[row] for row in index),
        )

    def verify(self) -> None:
        """Read all pixels once and raise unless they are those that were written."""
        if pack_folder.checksum(self.pixels) != self.checksum:
            raise ValueError(
                "the pixels of the pack must be those that were written, got others; pack the images again."
            )

    @classmethod
    def open(cls, folder: str | Path) -> Pack:
        """The pack in a folder, without looking at the images it was made from."""
        found = pack_folder.read(Path(folder))
        if found is None:
            raise ValueError(f"folder {folder} must hold a pack, got none; make one with pack(table, folder).")
        return cls(**found[0])


def pack(
    table: ImageTable,
    folder: str | Path | None,
    *,
    side: int | None = 256,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Pack:
    """Decode and shrink the images of a table into a folder, or open what is there if the sources are unchanged.

    - ``folder``: one folder per table; None keeps the pack in memory only;
    - ``side``: images whose shorter side is longer are shrunk to it, aspect preserved, by an antialiased triangle
      filter (Pillow's bilinear, the longer side rounded down); smaller ones stay. None keeps every size;
    - ``workers``: processes that decode; 0: none but this one; None: one per core, none for few images;
    - ``progress(done, total)`` is called after each image.

    An image that cannot be decoded is left out and listed in ``bad``; only if all of them are bad is it an error. Sources
    are unchanged if paths, sizes and times of change are those of before (arrays: their bytes). Labels and class names
    are always the table's. Several processes may pack into one folder: the first builds, the others wait for it.

    >>> pack(ImageTable(np.zeros((2, 8, 6), np.uint8), np.array([0, 1]), ("cat", "dog")), None).image(1).shape
    (8, 6, 3)
    """
    checks.setting("pack", "side", side, checks.Limit(low=1, whole=True, none=True))
    checks.setting("pack", "workers", workers, checks.Limit(low=0, whole=True, none=True))
    if not len(table):
        raise ValueError("table must hold at least one image, got none; check where its images come from.")
    digest = fingerprint(table, side)
    if folder is None:
        memory = bytearray()
        built = _build(table, digest, side, workers, progress, memory.extend)
        return replace(built, pixels=np.frombuffer(memory, np.uint8))
    place = Path(folder)
    pack_folder.make(place)
    found = _stored(place, digest)
    if found is None:
        with pack_folder.lock(place) as held:
            found = _stored(place, digest)  # another process may have built it meanwhile
            if found is None:
                return _build_in(place, held, table, digest, side, workers, progress)
    if progress is not None:
        progress(len(table), len(table))
    return _with_labels_of(table, place, *found)


def fingerprint(table: ImageTable, side: int | None) -> str:
    """What the pixels of a pack depend on, as 64 hexadecimal digits."""
    found = hashlib.sha256(f"nearkin pack {pack_folder.VERSION}, side {side}, {len(table)} images".encode())
    for image in table.images:
        if isinstance(image, Path):
            try:
                at = os.stat(image)
                facts = f"{at.st_size} {at.st_mtime_ns}"
            except OSError:
                facts = "missing"
            found.update(os.fsencode(os.path.abspath(image)) + f"\0{facts}\n".encode())
        else:
            pixels = np.ascontiguousarray(image)
            found.update(f"{pixels.dtype} {pixels.shape}\n".encode())
            found.update(pixels.data)
    return found.hexdigest()


def _images(table: ImageTable, side: int | None, workers: int | None) -> Images:
    paths = [image for image in table.images if isinstance(image, Path)]
    return read_images(paths, side=side, workers=workers) if len(paths) == len(table) else _arrays(table, side)


class _Write(Protocol):
    def __call__(self, content: Any, /) -> object: ...


def _build(
    table: ImageTable, digest: str, side: int | None, workers: int | None, progress: Progress | None, write: _Write
) -> Pack:
    """Hand all pixels to ``write`` in the order of the table; the pack returned has none yet."""
    offset, height, width, rows = [], [], [], []
    bad: list[tuple[str, str]] = []
    written, checksum = 0, hashlib.sha256()
    with contextlib.closing(_images(table, side, workers)) as images:
        for row, found in enumerate(images):
            if isinstance(found, BadImage):
                bad.append((table.name(row), found.reason))
            else:
                content = np.ascontiguousarray(found).reshape(-1)
                write(content.data)
                checksum.update(content.data)
                offset.append(written)
                height.append(found.shape[0])
                width.append(found.shape[1])
                rows.append(row)
                written += content.nbytes
            if progress is not None:
                progress(row + 1, len(table))
    if not rows:
        raise ValueError(
            f"table must hold an image that can be decoded, got {len(table):,} that cannot, such as {bad[0][0]}: "
            f"{bad[0][1]}; check the files."
        )
    made = Pack(
        np.empty(0, np.uint8), np.array(offset, np.int64), np.array(height, np.int32), np.array(width, np.int32),
        table.labels, (), None, np.array(rows, np.int64), (), tuple(bad), digest, (), checksum.hexdigest(),
    )  # fmt: skip
    return _labelled(made, table)


def _labelled(made: Pack, table: ImageTable) -> Pack:
    """The pack with everything but pixels taken from the table."""
    return replace(
        made,
        labels=table.labels[made.rows],
        class_names=tuple(table.class_names),
        query=None if table.query is None else np.asarray(table.query)[made.rows],
        names=tuple(table.name(row) for row in made.rows.tolist()),
        super_classes=tuple(table.super_classes),
    )


def _arrays(table: ImageTable, side: int | None) -> Images:
    for row, image in enumerate(table.images):
        pixels = np.asarray(image)
        if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,)):
            shape = " x ".join(map(str, pixels.shape))
            yield BadImage(
                table.name(row), f"it is an array of {pixels.dtype}, {shape}, not of uint8, height x width x 3"
            )
        elif not pixels.size:
            yield BadImage(table.name(row), "it has no pixels")
        else:
            small = shrink(pixels, side)
            yield small if small.ndim == 3 else np.repeat(small[:, :, None], 3, 2)


def _build_in(
    folder: Path,
    held: bool,
    table: ImageTable,
    digest: str,
    side: int | None,
    workers: int | None,
    progress: Progress | None,
) -> Pack:
    token = secrets.token_hex(4)
    if held:
        pack_folder.clean(folder)
    building, name = folder / f".building-{token}", f"pixels-{token}.bin"
    try:
        with open(building, "xb", buffering=2**20) as file:
            built = _build(table, digest, side, workers, progress, file.write)
            file.flush()
            os.fsync(file.fileno())
        os.replace(building, folder / name)
        pack_folder.publish(folder, name, built)
    except BaseException as error:
        building.unlink(missing_ok=True)
        (folder / name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(
                f"folder {folder} must have room for the decoded images, but the disk is full; free some space or "
                f"choose another folder."
            ) from error
        raise
    if held:
        pack_folder.clean(folder)
    return replace(built, pixels=np.memmap(folder / name, np.uint8, "r"))


def _stored(folder: Path, digest: str) -> tuple[Pack, str] | None:
    """The pack in the folder and the name of its pixels, if it was made from these sources."""
    try:
        found = pack_folder.read(folder)
    except ValueError:
        return None  # damaged, or of another version: built again
    return None if found is None or found[0]["digest"] != digest else (Pack(**found[0]), found[1])


def _with_labels_of(table: ImageTable, folder: Path, stored: Pack, pixels: str) -> Pack:
    """The pack with the table's labels. Where they changed, the small files are written again if that is allowed."""
    ready = _labelled(stored, table)
    if not _same_labels(stored, ready):
        with contextlib.suppress(OSError), pack_folder.lock(folder) as held:
            pack_folder.publish(folder, pixels, ready)
            if held:
                pack_folder.clean(folder)
    return ready


def _same_labels(one: Pack, other: Pack) -> bool:
    facts = [(p.class_names, p.super_classes, p.names, p.query is None) for p in (one, other)]
    queries = one.query is None or other.query is None or np.array_equal(one.query, other.query)
    return facts[0] == facts[1] and queries and np.array_equal(one.labels, other.labels)

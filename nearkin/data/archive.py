"""Unpacking archives that come from elsewhere: nothing leaves the folder, and nothing half done stays in it."""

from __future__ import annotations

import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from nearkin.data.files import readable

Progress = Callable[[int, int], None]
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
CHUNK = 1 << 20
BLOCK = 512


@dataclass(frozen=True)
class Member:
    """One entry of an archive: where it goes, its size, and how to read it (None for a folder)."""

    name: PurePosixPath
    size: int
    read: Callable[[], IO[bytes]] | None


def extract(
    archive: str | os.PathLike[str], folder: str | os.PathLike[str], progress: Progress | None = None
) -> list[Path]:
    """Unpack a tar (plain or compressed) or zip archive into ``folder``; returns what now lies there, top level only.

    Everything is first written to a temporary folder beside its destination and then renamed, so an interruption
    leaves nothing. Names that lead outside, links and devices are refused, and so is a folder that is already there.
    ``progress(done, total)`` counts bytes of the archive.
    """
    source, target = Path(archive).expanduser(), Path(folder).expanduser()
    if not source.is_file():
        raise ValueError(f"archive must be a file, got {source}, which is none; check the path.")
    target.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target))
    try:
        try:
            _unpack(source, target, aside, progress)
        except (*DAMAGED, OSError) as error:
            # The bz2 and gzip readers report damage as errors of the system without a number.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"archive {source} must be whole, got {error}; fetch it again.") from error
        return _move(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _unpack(source: Path, target: Path, aside: Path, progress: Progress | None) -> None:
    total = source.stat().st_size
    with open(source, "rb") as raw:
        if zipfile.is_zipfile(raw):
            members = _zip_members(source, raw)
        elif _is_tar(raw):
            members = _tar_members(source, raw)
        else:
            raise ValueError(f"archive must be a tar or zip file, got {source}, which is neither; check the file.")
        for member in members:
            top = target / member.name.parts[0]
            if top.is_dir() or (top.exists() and (member.read is None or len(member.name.parts) > 1)):
                raise ValueError(
                    f"folder must not yet hold {readable(top.name)}, which {source.name} contains, got one in {target}; "
                    f"remove it or unpack elsewhere."
                )
            _write(source, member, aside)
            if progress is not None:
                progress(min(raw.tell(), total), total)
    if progress is not None:
        progress(total, total)


def _is_tar(raw: IO[bytes]) -> bool:
    raw.seek(0)
    try:
        tarfile.open(fileobj=raw, mode="r:*").close()
    except (*DAMAGED, OSError):
        return False
    finally:
        raw.seek(0)
    return True


def _safe(source: Path, name: str) -> PurePosixPath | None:
    """The name as a path that stays inside; None for the archive's own folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or any(":" in part for part in path.parts[:1]) or "\0" in name:
        raise ValueError(
            f"archive {source} must hold names inside its folder, got {readable(name)!r}, which leads outside; "
            f"do not trust this file."
        )
    return path if path.parts else None


def _tar_members(source: Path, raw: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=raw, mode="r:*") as content:
        for entry in content:
            if not (entry.isreg() or entry.isdir()):
                kind = "a link" if entry.issym() or entry.islnk() else "a device"
                raise _special(source, entry.name, kind)
            name = _safe(source, entry.name)
            if name is not None:
                yield Member(name, entry.size, None if entry.isdir() else _tar_reader(content, entry))
        # Where the end is cut off between two files, reading just stops: the mark of the end must be there.
        assert content.fileobj is not None
        content.fileobj.seek(content.offset)
        if content.fileobj.read(BLOCK) != bytes(BLOCK):
            raise tarfile.ReadError("no mark of its end, so it is cut off or damaged")
        while content.fileobj.read(CHUNK):  # to the end, where a compressed file keeps its checksum
            pass


def _tar_reader(content: tarfile.TarFile, entry: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def read() -> IO[bytes]:
        opened = content.extractfile(entry)
        assert opened is not None
        return opened

    return read


def _zip_members(source: Path, raw: IO[bytes]) -> Iterator[Member]:
    with zipfile.ZipFile(raw) as content:
        for entry in content.infolist():
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _special(source, entry.filename, "a link" if stat.S_ISLNK(mode) else "a device")
            if entry.flag_bits & 1:
                raise ValueError(
                    f"archive {source} must not be encrypted, got {readable(entry.filename)!r} with a password; "
                    f"unpack it by hand with the password its owners gave you."
                )
            name = _safe(source, entry.filename)
            if name is not None:
                yield Member(name, entry.file_size, None if entry.is_dir() else _zip_reader(content, entry))


def _zip_reader(content: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: content.open(entry)


def _special(source: Path, name: str, kind: str) -> ValueError:
    return ValueError(
        f"archive {source} must hold files and folders only, got {kind}, {readable(name)!r}; do not trust this file."
    )


def _write(source: Path, member: Member, aside: Path) -> None:
    place = aside.joinpath(*member.name.parts)
    if member.read is None:
        place.mkdir(parents=True, exist_ok=True)
        return
    free = shutil.disk_usage(aside).free
    if member.size > free:
        raise ValueError(
            f"disk must have room for {readable(str(member.name))} ({member.size:,} bytes), got {free:,} bytes free "
            f"in {aside.parent}; make room and run the same again."
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with member.read() as content, open(place, "xb") as file:
            shutil.copyfileobj(content, file, CHUNK)
    except FileExistsError:
        raise ValueError(
            f"archive {source} must name each file once, got {readable(str(member.name))!r} twice; fetch it again."
        ) from None


def _move(aside: Path, target: Path) -> list[Path]:
    """Rename what was unpacked to its place; folders last, since their presence says that all is there."""
    moved = []
    for entry in sorted(aside.iterdir(), key=lambda entry: (entry.is_dir(), entry.name)):
        os.replace(entry, target / entry.name)
        moved.append(target / entry.name)
    return sorted(moved)

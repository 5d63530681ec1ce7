"""Getting a benchmark: download what is missing, verify, unpack, and check the published counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from nearkin.data.archive import extract
from nearkin.data.download import Check, download, part_of
from nearkin.data.files import naming, subfolders
from nearkin.data.registry import Entry, Remote, entry_of, load
from nearkin.data.table import Splits

Progress = Callable[[str, int, int | None], None]
Say = Callable[[str], None]


def get(
    name: str, root: str | os.PathLike[str], progress: Progress | None = None, say: Say = lambda sentence: None
) -> Splits:
    """Bring a benchmark into the folder ``root`` and load it; what is already there is not fetched again.

    Archives that were put into ``root`` by hand are used instead of a download, after the same checks.
    ``progress(what, done, total)`` counts bytes, ``say(sentence)`` hears what is done.
    """
    entry = entry_of(name)
    if not entry.sources:
        use = f"nearkin.data.load({name!r}{', root' * entry.needs_root})"
        raise ValueError(f"name must be a data set to download, got {name!r}, {entry.description}; use {use}.")
    folder = Path(root).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"root must be a folder, got the file {folder}; pass another place.")
    if folder.is_dir() and entry.layout is not None and entry.layout(folder) is not None:
        try:
            splits = load(name, folder)
        except ValueError:
            pass  # not whole yet; what is missing comes now, or the last check says what is wrong
        else:
            say(f"{name} is already whole in {folder}.")
            return splits
    source = _choose(name, entry, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for remote in source:
        _bring(remote, folder, progress, say)
    splits = load(name, folder)
    say(f"{len(splits.train):,} images to train on and {len(splits.test):,} to test on, as published.")
    if entry.licence:
        say(f"Terms of use: {entry.licence}; see {entry.page}.")
    return splits


def _choose(name: str, entry: Entry, folder: Path) -> tuple[Remote, ...]:
    """The first set of files of which each is there or has an address."""
    absent: list[list[str]] = []
    for source in entry.sources:
        missing = [
            remote.name
            for remote in source
            if not (remote.addresses or _unpacked(remote, folder) or _present(remote, folder))
        ]
        if not missing:
            return source
        absent.append(missing)
    files = ", or ".join(naming(missing, limit=9) for missing in absent)
    raise ValueError(
        f"{name}: {entry.by_hand} ({entry.page}), so its files must be supplied by hand, got none of {files} in "
        f"{folder}; put them there and run the same again to verify and unpack them."
    )


def _places(folder: Path) -> list[Path]:
    """The root and the folders in it: where a person may have put an archive."""
    return [folder, *(folder / name for name in subfolders(folder))] if folder.is_dir() else [folder]


def _present(remote: Remote, folder: Path) -> Path | None:
    return next((place / remote.name for place in _places(folder) if (place / remote.name).is_file()), None)


def _unpacked(remote: Remote, folder: Path) -> bool:
    """Whether it was unpacked before; unpacking is all or nothing, so the presence of its folder says so."""
    return bool(remote.makes) and any((place / remote.makes).is_dir() for place in _places(folder))


def _bring(remote: Remote, folder: Path, progress: Progress | None, say: Say) -> None:
    if _unpacked(remote, folder):
        say(f"{remote.makes} is already unpacked.")
        return
    check = Check(remote.size, remote.sha256, remote.md5)
    path = _present(remote, folder)
    if path is None:
        path = folder / remote.name
        if part_of(path).exists():
            say(f"{remote.name}: going on after {part_of(path).stat().st_size:,} bytes.")
        download(
            remote.addresses,
            path,
            size=remote.size,
            sha256=remote.sha256,
            md5=remote.md5,
            progress=_named(progress, f"download {remote.name}"),
        )
    else:
        problem = check.problem(path)
        if problem is not None:
            raise ValueError(f"{path} must be the published file, got {problem}; remove it and run the same again.")
    known = f"{check.kind} as published" if check.kind else "not verified, since no checksum is published"
    say(f"{remote.name}: {known}.")
    if remote.makes:
        extract(path, path.parent, _named(progress, f"unpack {remote.name}"))
        say(f"{remote.name} is unpacked; it stays, {path.stat().st_size:,} bytes: remove it if you need the room.")


def _named(progress: Progress | None, what: str) -> Callable[[int, int | None], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(what, done, total)

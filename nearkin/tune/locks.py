"""Locks on files that end with the process that holds them, however it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def _fcntl() -> Any:
    try:
        import fcntl
    except ImportError:
        raise ImportError(
            "nearkin tune needs locks on files as Linux and macOS have them, got none; use WSL."
        ) from None
    return fcntl


class FileLock:
    """One holder at a time, over all processes; ``acquire`` waits, ``try_acquire`` does not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: Any = None

    def acquire(self) -> bool:
        file = self.path.open("ab")
        _fcntl().flock(file, _fcntl().LOCK_EX)
        self.file = file
        return True

    def try_acquire(self) -> bool:
        file = self.path.open("ab")
        try:
            _fcntl().flock(file, _fcntl().LOCK_EX | _fcntl().LOCK_NB)
        except OSError:
            file.close()
            return False
        self.file = file
        return True

    def release(self) -> None:
        if self.file is not None:
            self.file.close()
        self.file = None


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Alone with what the lock guards."""
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()

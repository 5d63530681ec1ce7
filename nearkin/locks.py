"""Locks on files that end with the process that holds them, however it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


def take(file: IO[Any], *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file until it is closed; False where others hold it and nobody is to wait.

    ``shared``: beside others that share it.
    """
    try:
        import fcntl
    except ImportError:
        raise ImportError("locks on files must be as Linux and macOS have them, got none; use WSL.") from None
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


class FileLock:
    """One holder at a time, over all processes; ``acquire`` waits, ``try_acquire`` does not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: Any = None

    def acquire(self) -> bool:
        return self._take(wait=True)

    def try_acquire(self) -> bool:
        return self._take(wait=False)

    def _take(self, wait: bool) -> bool:
        with contextlib.ExitStack() as left:
            file = left.enter_context(self.path.open("ab"))
            if not take(file, wait=wait):
                return False
            left.pop_all()  # it stays open
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

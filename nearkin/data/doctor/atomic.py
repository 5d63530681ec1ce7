"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def check_target(path: Path) -> None:
    """Raise unless a file could be written there; to be asked before the work, not after it."""
    if path.is_dir():
        raise ValueError(f"{path} must be a file name, got a folder; add a name to it.")
    if not path.parent.is_dir():
        raise ValueError(f"{path} must lie in a folder that exists, got {path.parent}, which does not; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path} must lie in a folder that one may write to, got a refusal; choose another.")


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, then move over it; a crash leaves what was there before."""
    check_target(path)
    working = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with working.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(working, path)
    except OSError as error:
        raise ValueError(f"{path} could not be written: {error.strerror or error}; free some space there.") from error
    finally:
        working.unlink(missing_ok=True)

"""On what a run was done: device, how many runs shared it, versions, commit."""

from __future__ import annotations

import functools
import platform
import subprocess
from pathlib import Path
from typing import Any

from nearkin.results import SHARED


def where(device: str = "auto", shared: int | None = None) -> dict[str, Any]:
    """The machine's device by name, versions of nearkin, torch and Python, and the commit where the code is in git.

    ``shared``: how many runs are done on the device at a time, where that is known.
    """
    import torch

    from nearkin import __version__

    cuda = torch.cuda.is_available() and device != "cpu"
    name = torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine()
    versions = {"nearkin": __version__, "torch": torch.__version__.split("+")[0], "python": platform.python_version()}
    found = {"device": name, "versions": versions, "commit": commit()}
    return found if shared is None else found | {SHARED: shared}


@functools.cache
def commit() -> str:
    """The commit of the code, with a star where files differ from it; empty where the code is in no repository of git."""
    return commit_of(Path(__file__))


def commit_of(file: Path) -> str:
    """The commit of a file's repository; empty where git does not keep the file, which an installed one may lie beside."""
    try:
        _git(file.parent, "ls-files", "--error-unmatch", file.name)
        return _git(file.parent, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=*")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    found = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True)
    return found.stdout.strip()

"""On what a run was done: device, how many runs shared it, versions, commit."""

from __future__ import annotations

import functools
import platform
import subprocess
from pathlib import Path
from typing import Any

from nearkin.results import SHARED
from nearkin.wording import count

CPUS = Path("/proc/cpuinfo")
"""Where Linux says what the processor is called."""


def where(device: str = "auto", shared: int | None = None, threads: int = 0) -> dict[str, Any]:
    """The machine's device by name, versions of nearkin, torch and Python, and the commit where the code is in git.

    ``shared``: how many runs are done on the device at a time, where that is known; ``threads``: those of a run on a CPU,
    0 as many as torch takes by itself.
    """
    import torch

    from nearkin import __version__

    cuda = torch.cuda.is_available() and device != "cpu"
    name = (
        torch.cuda.get_device_name()
        if cuda
        else f"{processor()}, {count(threads or torch.get_num_threads(), 'thread')}"
    )
    versions = {"nearkin": __version__, "torch": torch.__version__.split("+")[0], "python": platform.python_version()}
    found = {"device": name, "versions": versions, "commit": commit()}
    return found if shared is None else found | {SHARED: shared}


def processor() -> str:
    """The processor by its model, which tells two machines apart; the kind of its instructions where no file names it."""
    try:
        lines = CPUS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(filter(None, models), platform.processor() or platform.machine())


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

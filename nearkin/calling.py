"""How this program is called from here, so that a line it prints can be copied as it stands."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """The name ``nearkin`` where the shell finds this installation by it, else the path of its script or module."""
    script = Path(sys.executable).parent / "nearkin"
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m nearkin"
    known = shutil.which("nearkin")
    if known is not None and Path(known).resolve() == script.resolve():
        return "nearkin"
    if not script.is_relative_to(Path.cwd()):
        return shlex.quote(str(script))
    near = os.path.relpath(script)
    return shlex.quote(near if os.sep in near else os.path.join(os.curdir, near))


def line(*words: str | Path) -> str:
    """A command as a line for the shell.

    >>> line("index", "search", "my birds.index", "IMAGE").removeprefix(program())
    " index search 'my birds.index' IMAGE"
    """
    return " ".join([program(), *(shlex.quote(str(word)) for word in words)])

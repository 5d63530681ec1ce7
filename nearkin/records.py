"""Files of JSON lines, such as the log of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def records(path: Path, *, steps: bool = True) -> list[dict[str, Any]]:
    """The lines of a file; those that cannot be read are left out, as is a file that is not there.

    Without ``steps`` those of single steps, which are most of a log, are passed over unread.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return []
    found = []
    for line in content.split(b"\n"):
        if not steps and line.startswith(b'{"kind": "step"'):
            continue
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found

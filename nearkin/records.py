"""Files of JSON lines, such as the log of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def measured(log: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The measures of one kind in a log, epoch by epoch.

    A run that chooses no epoch measures its last one as "test", which ends its curve on the test classes. One that chooses
    by validation measures the chosen epoch so, which is no point of a curve.

    >>> log = [{"kind": "evaluate", "epoch": 9}, {"kind": "test", "epoch": 19}]
    >>> [record["epoch"] for record in measured(log, "evaluate")]
    [9, 19]
    """
    found = [record for record in log if record.get("kind") == kind]
    if kind != "evaluate" or not found or any(record.get("kind") == "validate" for record in log):
        return found
    known = {record.get("epoch") for record in found}
    return [
        record
        for record in log
        if record.get("kind") == kind or (record.get("kind") == "test" and record.get("epoch") not in known)
    ]

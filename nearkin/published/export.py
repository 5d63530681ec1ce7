"""Facts as JSON or CSV, for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from nearkin import checkpoint
from nearkin.published.fact import Fact


def save_json(path: str | Path, facts: Sequence[Fact]) -> None:
    """A list with one object per line."""
    lines = ",\n".join(json.dumps(asdict(fact), ensure_ascii=False) for fact in facts)
    checkpoint.replace(Path(path), f"[\n{lines}\n]\n".encode())


def save_csv(path: str | Path, facts: Sequence[Fact]) -> None:
    """A line of names and one line per fact; None is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Fact)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(fact) for fact in facts)
    checkpoint.replace(Path(path), text.getvalue().encode())

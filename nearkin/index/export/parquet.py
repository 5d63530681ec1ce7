"""A Parquet file, which most tools for data read."""

from __future__ import annotations

import io
from pathlib import Path

from nearkin import checkpoint
from nearkin.index.export import Progress, arrow
from nearkin.index.index import Index


def write(index: Index, target: str, name: str, progress: Progress | None) -> None:
    import pyarrow.parquet as parquet

    path = Path(target)
    checkpoint.check_file("target", path)
    if path.exists():
        raise ValueError(f"target must be a new file, got {target!r}, which is there; choose another or remove it.")
    buffer = io.BytesIO()
    parquet.write_table(arrow(index, progress), buffer)
    checkpoint.replace(path, buffer.getvalue())

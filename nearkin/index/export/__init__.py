"""An index in another store, for those who outgrow one machine: one file per store, all with the same columns.

Every store gets id, path, label and the unit vector of each image, under cosine similarity, so that the same neighbours
come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checks
from nearkin.index.command import STORES
from nearkin.index.index import Index

BATCH = 1024
Progress = Callable[[int, int], None]


def export(index: Index, store: str, target: str, name: str = "images", progress: Progress | None = None) -> int:
    """Copy every image of an index to a store; how many there are.

    ``target``: a file (parquet), a folder (lancedb), a folder or an address (qdrant), an address (pgvector,
    ``postgresql://...``). ``name``: of the table or collection, which must not be there yet.
    """
    if store not in STORES:
        raise ValueError(checks.unknown("store", store, STORES))
    if not target:
        raise ValueError(f"target must say where {store} is to be written, got nothing; pass --target.")
    if not name.isidentifier():
        raise ValueError(f"name must be letters, digits and underscores, got {name!r}; choose such a name.")
    if store == "parquet":
        from nearkin.index.export.parquet import write
    elif store == "lancedb":
        from nearkin.index.export.lance import write
    elif store == "qdrant":
        from nearkin.index.export.qdrant import write
    else:
        from nearkin.index.export.pgvector import write
    write(index, target, name, progress)
    return len(index)


def batches(
    index: Index, progress: Progress | None = None
) -> Iterator[tuple[list[int], list[str], list[str], NDArray[np.float32]]]:
    """Ids, paths, labels and vectors of all images, some at a time."""
    numbers, vectors = index.vectors()
    rows = list(index.rows())
    for begin in range(0, len(rows), BATCH):
        part = rows[begin : begin + BATCH]
        assert [row.id for row in part] == numbers[begin : begin + BATCH].tolist()
        yield (
            [row.id for row in part],
            [row.path for row in part],
            [row.label for row in part],
            vectors[begin : begin + BATCH],
        )
        if progress is not None:
            progress(min(begin + BATCH, len(rows)), len(rows))


def arrow(index: Index, progress: Progress | None = None) -> Any:
    """All images as an Arrow table with a vector column of fixed length."""
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError("pyarrow must be installed for this, got none; run pip install 'nearkin[data]'.") from None
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("path", pa.string()),
            ("label", pa.string()),
            ("vector", pa.list_(pa.float32(), index.dim)),
        ]
    )
    parts = []
    for ids, paths, labels, vectors in batches(index, progress):
        column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).reshape(-1)), index.dim)
        parts.append(pa.record_batch([pa.array(ids), pa.array(paths), pa.array(labels), column], schema=schema))
    return pa.Table.from_batches(parts, schema)

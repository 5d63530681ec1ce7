"""LanceDB: a folder that is searched without a server."""

from __future__ import annotations

from nearkin.index.export import Progress, arrow
from nearkin.index.index import Index


def write(index: Index, target: str, name: str, progress: Progress | None) -> None:
    try:
        import lancedb
    except ImportError:
        raise ImportError("lancedb must be installed for this, got none; run pip install 'nearkin[lancedb]'.") from None
    store = lancedb.connect(target)
    if name in store.table_names():
        raise ValueError(f"name must be new in {target!r}, got {name!r}, which is there; choose another or drop it.")
    store.create_table(name, arrow(index, progress))

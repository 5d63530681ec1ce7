"""Qdrant: a server by its address, or its local form in a folder."""

from __future__ import annotations

from nearkin.index.export import Progress, batches
from nearkin.index.index import Index


def write(index: Index, target: str, name: str, progress: Progress | None) -> None:
    try:
        from qdrant_client import QdrantClient, models
    except ImportError:
        raise ImportError(
            "qdrant-client must be installed for this, got none; run pip install 'nearkin[qdrant]'."
        ) from None
    client = QdrantClient(url=target) if "://" in target else QdrantClient(path=target)
    try:
        if client.collection_exists(name):
            raise ValueError(
                f"name must be new in {target!r}, got {name!r}, which is there; choose another or drop it."
            )
        client.create_collection(
            name, vectors_config=models.VectorParams(size=index.dim, distance=models.Distance.COSINE)
        )
        for ids, paths, labels, vectors in batches(index, progress):
            payloads = [{"path": path, "label": label} for path, label in zip(paths, labels, strict=True)]
            client.upsert(name, points=models.Batch(ids=list(ids), vectors=vectors.tolist(), payloads=payloads))
    finally:
        client.close()

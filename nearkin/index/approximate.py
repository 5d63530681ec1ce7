"""Faster search of large indexes that may miss a neighbour now and then; how often is measured and said.

A graph of neighbours (HNSW, Malkov 2016) by faiss lies beside the segments as ``approximate.faiss``. It belongs to one
state of the index: after a change it is left aside until it is built again, and search is exact meanwhile.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checkpoint
from nearkin.index.manifest import FILE, writing

if TYPE_CHECKING:
    from nearkin.index.index import Index

GRAPH, FACTS = "approximate.faiss", "approximate.json"
LINKS = 32
EFFORTS = (16, 32, 64, 128, 256, 512)
ASKED = 1000
DEPTH = 10
INSTALL = "faiss must be installed for approximate search, got none; run pip install 'nearkin[approximate]'."


@dataclass(frozen=True)
class Quality:
    """What an approximate index is worth: the share of the true ten nearest that it finds, milliseconds of a query with
    and without it, and the effort (nodes looked at) that search spends."""

    recall: float
    milliseconds: float
    exact_milliseconds: float
    effort: int
    vectors: int
    state: str


def build(index: Index, least: float = 0.95, seed: int = 0) -> Quality:
    """Build the graph, with the least effort whose measured recall reaches ``least``, and keep it beside the index."""
    faiss = _faiss()
    with writing(index.folder):
        index.reload()
        numbers, vectors = index.vectors()
        if len(numbers) < 2:
            raise ValueError(f"index must hold at least two images, got {len(numbers)}; add images first.")
        graph = faiss.IndexHNSWFlat(index.dim, LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = 128
        graph.add(vectors)
        chosen = np.random.default_rng(seed).permutation(len(numbers))[:ASKED]
        depth = min(DEPTH, len(numbers))
        begun = time.perf_counter()
        truth, _ = index.nearest(vectors[chosen], depth)
        exact = (time.perf_counter() - begun) / len(chosen)
        for effort in EFFORTS:
            graph.hnsw.efSearch = effort
            begun = time.perf_counter()
            _, found = graph.search(vectors[chosen], depth)
            took = (time.perf_counter() - begun) / len(chosen)
            hits = [len(set(numbers[row]) & set(right)) for row, right in zip(found, truth, strict=True)]
            recall = float(np.sum(hits)) / truth.size
            if recall >= least:
                break
        quality = Quality(recall, 1e3 * took, 1e3 * exact, effort, len(numbers), state(index.folder))
        working = index.folder / f".{GRAPH}-{os.getpid()}"
        faiss.write_index(graph, str(working))
        os.replace(working, index.folder / GRAPH)
        checkpoint.replace(index.folder / FACTS, json.dumps(asdict(quality), indent=1).encode())
    return quality


def state(folder: Path) -> str:
    """A short name of what an index holds."""
    import hashlib

    return hashlib.sha256((folder / FILE).read_bytes()).hexdigest()[:16]


class Approximate:
    """The graph of an index, ready to search; ``open`` gives None where there is none for its present state."""

    def __init__(self, graph: Any, numbers: NDArray[np.int64], quality: Quality) -> None:
        self.graph, self.numbers, self.quality = graph, numbers, quality

    @classmethod
    def open(cls, index: Index) -> Approximate | None:
        path = index.folder / FACTS
        if not path.exists():
            return None
        quality = Quality(**json.loads(path.read_bytes()))
        if quality.state != state(index.folder):
            return None
        graph = _faiss().read_index(str(index.folder / GRAPH))
        graph.hnsw.efSearch = quality.effort
        return cls(graph, index.vectors()[0], quality)

    def nearest(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Numbers and cosines (q, k), -1 and -inf where there are fewer."""
        self.graph.hnsw.efSearch = max(self.quality.effort, k)
        scores, places = self.graph.search(np.ascontiguousarray(queries, np.float32), k)
        found = np.where(places >= 0, self.numbers[places], -1)
        return found, np.where(places >= 0, scores, -np.inf).astype(np.float32)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise ImportError(INSTALL) from None
    return faiss

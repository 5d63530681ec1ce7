"""Queries that were sent as images: kept for as long as the server runs, so that their address can be opened again."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST = 200
"""The oldest is forgotten first."""


@dataclass(frozen=True)
class Query:
    """An image that was sent: its vector, and a picture of it (JPEG)."""

    key: str
    vector: NDArray[np.float32]
    picture: bytes


class Queries:
    """The last queries by their keys. A key is drawn from the picture: the same image gets the same address.

    >>> kept = Queries(1)
    >>> first = kept.keep(np.zeros(2, np.float32), b"a")
    >>> kept.find(first.key) is first, kept.keep(np.ones(2, np.float32), b"b").key == first.key, kept.find(first.key)
    (True, False, None)
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Query] = OrderedDict()

    def keep(self, vector: NDArray[np.float32], picture: bytes) -> Query:
        query = Query(hashlib.sha256(vector.tobytes() + picture).hexdigest()[:20], vector, picture)
        with self._lock:
            self._kept[query.key] = query
            self._kept.move_to_end(query.key)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
        return query

    def find(self, key: str) -> Query | None:
        with self._lock:
            return self._kept.get(key)

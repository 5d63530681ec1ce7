"""What the page asks about images: which are near, what they look like, where to begin."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from nearkin import checks
from nearkin.data.decode import BadImage
from nearkin.index import Index, Row
from nearkin.index.rerank import METHODS
from nearkin.serve.collection import Collection
from nearkin.serve.picture import LARGE, picture
from nearkin.serve.queries import Queries, Query
from nearkin.serve.upload import MOST_BYTES, Uploads

MOST_RESULTS = 500


class NotFoundError(ValueError):
    """Something that was asked for is not there."""


class Search:
    """Searches for the page."""

    def __init__(self, collection: Collection, uploads: Uploads) -> None:
        self.collection, self.uploads, self.queries = collection, uploads, Queries()

    def send(self, content: bytes) -> Query:
        """Take an image as a query."""
        if not content:
            raise ValueError("An image must be sent, got nothing; choose a file.")
        try:
            side = max(self.collection.model().view.side, LARGE)
            pixels = self.uploads.read(content, side)
        except BadImage as bad:
            raise ValueError(f"This file cannot be searched for: {bad.reason}.") from bad
        return self.queries.keep(self.collection.embed(pixels), picture(pixels))

    def picture_of_query(self, key: str) -> bytes:
        return self._query(key).picture

    def results(self, *, number: int | None, key: str, k: int, label: str, again: str = "none") -> dict[str, Any]:
        """The images nearest to an image of the index, or to one that was sent, and how long it took."""
        begin = time.perf_counter()
        index = self.collection.index
        if not 1 <= k <= MOST_RESULTS:
            raise ValueError(f"k must be from 1 to {MOST_RESULTS}, got {k}; ask for fewer.")
        if again not in METHODS:
            raise ValueError(checks.unknown("again", again, METHODS))
        if label and label not in dict(self.collection.facts()["classes"]):
            raise NotFoundError(f"No image of the index has the class {label!r}; choose one from the list.")
        left: tuple[int, ...] = ()
        if number is not None:
            row = find(index, number)
            vector, truth, asked, left = index.vector(number), row.label, described(row), (number,)
        else:
            vector, truth, asked = self._query(key).vector, "", {"key": key}
        hits = index.search(vector, k, label=label or None, leave_out=left, again=again) if len(index) else []
        found = [
            {
                "id": hit.id,
                "similarity": round(float(hit.similarity), 4),
                "label": hit.label,
                "name": Path(hit.path).name,
                "right": hit.label == truth if truth and hit.label else None,
            }
            for hit in hits
        ]
        return {"query": asked, "hits": found, "milliseconds": round(1000 * (time.perf_counter() - begin), 1)}

    def sample(self, seed: int, count: int = 24) -> list[dict[str, Any]]:
        """Images to begin with, of as many classes as there are, drawn by a seed."""
        rows = list(self.collection.index.rows())
        draws = np.random.default_rng(seed)
        order = draws.permutation(len(rows))
        chosen: list[Row] = []
        seen: dict[str, int] = {}
        for most in (1, 3, count):
            for place in order:
                row = rows[place]
                if len(chosen) == count:
                    break
                if seen.get(row.label, 0) < most and row not in chosen:
                    seen[row.label] = seen.get(row.label, 0) + 1
                    chosen.append(row)
            if len(chosen) == min(count, len(rows)):
                break
        return [described(row) for row in chosen]

    def thumbnail(self, number: int) -> bytes:
        index = self.collection.index
        find(index, number)
        return index.thumbnail(number)

    def picture(self, number: int) -> bytes:
        """A large picture of an image of the index, from its file; the small one where that is gone or too large."""
        index = self.collection.index
        path = Path(find(index, number).path)
        try:
            if not path.is_file() or path.stat().st_size > MOST_BYTES:
                return index.thumbnail(number)
            return picture(self.uploads.read(path.read_bytes(), LARGE))
        except (OSError, BadImage):
            return index.thumbnail(number)

    def _query(self, key: str) -> Query:
        found = self.queries.find(key)
        if found is None:
            raise NotFoundError("The image of this address is no longer kept; send it again.")
        return found


def find(index: Index, number: int) -> Row:
    """The row of an image of the index."""
    try:
        return index.row(number)
    except ValueError:
        raise NotFoundError(f"There is no image {number} in the index; it may have been removed.") from None


def described(row: Row) -> dict[str, Any]:
    """An image as the page knows it: its file's name, never its path."""
    return {"id": row.id, "label": row.label, "name": Path(row.path).name}

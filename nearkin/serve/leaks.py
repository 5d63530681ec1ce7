"""Leaks: images of the index, or of a run's test set, that show the same picture as one that the run trained on.

Worked out in the background, once for each data set and each state of the index.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin.data.pack import Pack
from nearkin.index import Index
from nearkin.serve.collection import Collection
from nearkin.serve.images import Images, Progress
from nearkin.serve.prints import Copy, Prints, copies, of_index, taken
from nearkin.serve.search import described
from nearkin.serve.sources import Source, Sources


@dataclass
class Found:
    """What came out for one group of images: how many were compared, how many are too plain, and every pair."""

    compared: int
    plain: int
    pairs: list[Copy]

    @property
    def images(self) -> int:
        return len({pair.first for pair in self.pairs})


@dataclass
class Search:
    """A search for leaks: going on, ended with results, or ended with the reason why there are none."""

    index: Index
    images: Images
    progress: Progress = field(default_factory=Progress)
    why: str = ""
    training: int = 0
    plain: int = 0
    numbers: list[int] = field(default_factory=list)
    of_index: Found | None = None
    of_test: Found | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def go(self) -> None:
        try:
            self._go()
        except Exception as error:  # the page says it
            self.why = str(error).strip().rstrip(".") or type(error).__name__
        finally:
            self.ended.set()

    def _go(self) -> None:
        self.images.ready.wait()
        training, testing = self.images.train, self.images.test
        if training is None:
            self.why = self.images.why or "the data set has no training images"
            return
        known = self._prints("looking at training images", _of_pack(training), len(training))
        self.training, self.plain = len(training), int(known.plain.sum())
        if testing is not None:
            prints = self._prints("looking at test images", _of_pack(testing), len(testing))
            self.of_test = self._compared("comparing test images with training images", prints, known)
        self.numbers = [row.id for row in self.index.rows()]
        if self.numbers:
            prints = self._prints(
                "looking at images of the index", of_index(self.index, self.numbers), len(self.numbers)
            )
            self.of_index = self._compared("comparing images of the index with training images", prints, known)

    def _prints(self, job: str, pictures: Iterator[NDArray[np.uint8]], count: int) -> Prints:
        self.progress.begin(job, count)
        return taken(pictures, count, self.progress.tell)

    def _compared(self, job: str, prints: Prints, known: Prints) -> Found:
        self.progress.begin(job, 2 * len(prints))
        return Found(len(prints), int(prints.plain.sum()), copies(prints, known, self.progress.tell))


class Leaks:
    """Searches for leaks by data set; begun when first asked for."""

    def __init__(self, collection: Collection, sources: Sources) -> None:
        self.collection, self.sources = collection, sources
        self._lock = threading.Lock()
        self._held: dict[int, Search] = {}

    def facts(self, key: str, count: int) -> dict[str, Any]:
        """How far the search is, or what it found."""
        source = self.sources.find(key)
        search = self._search(source)
        said: dict[str, Any] = {"name": source.name, "data": source.result.data}
        if not search.ended.is_set():
            now = search.progress if search.images.ready.is_set() else search.images.progress
            return {**said, "state": "going", "said": now.job or "beginning", "done": now.done, "total": now.total}
        if search.why:
            return {**said, "state": "failed", "said": search.why}
        return {
            **said,
            "state": "done",
            "training": search.training,
            "plain": search.plain,
            "index": _group(search.of_index, count, lambda place: _in_index(search, place), search),
            "test": _group(search.of_test, count, lambda place: _in_pack(search.images.test, place), search),
        }

    def _search(self, source: Source) -> Search:
        images, index = self.sources.images(source), self.collection.index
        with self._lock:
            search = self._held.get(id(images))
            if search is None or (search.index is not index and search.ended.is_set()):
                search = self._held[id(images)] = Search(index, images)
                threading.Thread(target=search.go, daemon=True).start()
            return search


def _group(found: Found | None, count: int, shown: Any, search: Search) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "compared": found.compared,
        "plain": found.plain,
        "images": found.images,
        "total": len(found.pairs),
        "pairs": [
            {
                "image": shown(pair.first),
                "training": _in_pack(search.images.train, pair.second),
                "alike": round(pair.alike, 4),
                "mirrored": pair.mirrored,
            }
            for pair in found.pairs[:count]
        ],
    }


def _in_index(search: Search, place: int) -> dict[str, Any]:
    number = search.numbers[place]
    try:
        return described(search.index.row(number))
    except ValueError:
        return {"id": number, "label": "", "name": "removed since"}


def _in_pack(pack: Pack | None, row: int) -> dict[str, Any]:
    from pathlib import PurePath

    assert pack is not None
    return {"row": row, "label": pack.class_names[int(pack.labels[row])], "name": PurePath(pack.names[row]).name}


def _of_pack(pack: Pack) -> Iterator[NDArray[np.uint8]]:
    for row in range(len(pack)):
        yield pack.image(row)

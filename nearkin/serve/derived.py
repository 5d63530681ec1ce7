"""What takes long to work out from an index: done once for each state of it, by whoever asks first."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from nearkin.index import Index
from nearkin.serve.collection import Collection
from nearkin.serve.plane import FOLDER, Plane
from nearkin.serve.search import described
from nearkin.serve.survey import Survey, doubles, survey


class Derived:
    """Map and survey of the index as it is now."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._planes, self._surveys = threading.Lock(), threading.Lock()
        self._plane: tuple[Index, Plane] | None = None
        self._survey: tuple[Index, Survey] | None = None
        self._doubles: tuple[Index, list[tuple[int, int, float]]] | None = None

    def plane(self) -> Plane:
        index = self.collection.index
        with self._planes:
            if self._plane is None or self._plane[0] is not index:
                self._plane = index, Plane(index, self.collection.folder / FOLDER)
            return self._plane[1]

    def survey(self) -> Survey:
        index = self.collection.index
        with self._surveys:
            if self._survey is None or self._survey[0] is not index:
                self._survey = index, survey(index)
            return self._survey[1]

    def doubles(self) -> list[tuple[int, int, float]]:
        """Pairs of ids that are the same image, the most alike first."""
        index, found = self.collection.index, self.survey()
        with self._surveys:
            if self._doubles is None or self._doubles[0] is not index:
                self._doubles = index, doubles(index, found)
            return self._doubles[1]

    def points(self) -> bytes:
        """Every image in 16 bytes: x and y (float32), id and place of its class among the classes (int32; -1 for none)."""
        plane = self.plane()
        labels = {row.id: row.label for row in self.collection.index.rows()}
        places = {name: place for place, (name, _) in enumerate(self.collection.facts()["classes"])}
        found = np.empty(len(plane.numbers), [("x", "<f4"), ("y", "<f4"), ("id", "<i4"), ("class", "<i4")])
        found["x"], found["y"], found["id"] = plane.places[:, 0], plane.places[:, 1], plane.numbers
        found["class"] = [places.get(labels.get(int(number), ""), -1) for number in plane.numbers]
        return found.tobytes()

    def recall(self) -> dict[str, Any]:
        """Recall@1 of every class."""
        found = self.survey()
        return {"recall": found.recall, "whole": found.whole, "asked": len(found.asked)}

    def worst(self, count: int) -> dict[str, Any]:
        """The queries that fail worst, with their neighbours."""
        index, found = self.collection.index, self.survey()
        queries = []
        for place in found.worst(count):
            row = index.row(int(found.asked[place]))
            queries.append({**described(row), "hits": self._near(found, place, row.label)})
        failed = len(found.worst(len(found.asked)))
        known = sum(bool(found.labels[number]) for number in found.asked.tolist())
        return {"queries": queries, "failed": failed, "asked": known, "whole": found.whole}

    def doubts(self, count: int) -> dict[str, Any]:
        """Images that look like another class than their own, and images that are there twice."""
        index, found = self.collection.index, self.survey()
        doubtful = []
        for place, label, share in found.doubtful(count):
            row = index.row(int(found.asked[place]))
            near = self._near(found, place, row.label)
            doubtful.append({**described(row), "like": label, "share": round(share, 3), "hits": near})
        twice = [
            {"similarity": round(cosine, 4), "images": [described(index.row(one)), described(index.row(other))]}
            for one, other, cosine in self.doubles()[:count]
        ]
        return {"doubtful": doubtful, "doubles": twice, "asked": len(found.asked), "whole": found.whole}

    def _near(self, found: Survey, place: int, truth: str) -> list[dict[str, Any]]:
        index, near = self.collection.index, []
        for number, cosine in zip(found.near[place].tolist(), found.likeness[place].tolist(), strict=True):
            if number >= 0:
                row = index.row(number)
                right = row.label == truth if truth and row.label else None
                near.append({**described(row), "similarity": round(cosine, 4), "right": right})
        return near

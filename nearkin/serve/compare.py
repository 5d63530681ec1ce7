"""Two losses of a benchmark side by side: the queries that one gets right and the other does not."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from nearkin import checks
from nearkin.report.bench import Bench
from nearkin.report.pictures import Pictures, test_images, thumbnail
from nearkin.results import Result
from nearkin.serve.search import NotFoundError
from nearkin.tournament import Experiment

NEEDED = {"rows", "labels", "nearest", "similarity"}
SHOWN = 8


class Compare:
    """Comparisons over a benchmark, with the test images of its runs where they can be read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pictures: dict[str, Pictures] = {}

    def pictures(self, bench: Bench, run: Result) -> Pictures:
        """The test images of a run; read once."""
        with self._lock:
            if run.id not in self._pictures:
                self._pictures[run.id] = test_images(bench, run)
            return self._pictures[run.id]

    def picture(self, bench: Bench, place: int, row: int) -> tuple[bytes, str]:
        """A test image of an experiment and its kind."""
        table = _experiment(bench, place)
        found = self.pictures(bench, bench.counted(table, table.labels[table.order[0]])[0])
        if found.pack is None or not 0 <= row < len(found.pack):
            raise NotFoundError(f"There is no test image {row}; {found.why or 'it may have been removed'}.")
        content, kind, _ = thumbnail(found.pack.image(row))
        return content, f"image/{kind}"

    def queries(self, bench: Bench, place: int, one: str, other: str, count: int) -> dict[str, Any]:
        """Queries on which the first runs of two losses differ, those that only ``one`` gets right first."""
        table = _experiment(bench, place)
        for label in (one, other):
            if label not in table.labels:
                raise ValueError(checks.unknown("loss", label, table.labels))
        runs = [bench.counted(table, label)[0] for label in (one, other)]
        answers = [bench.answers(run) for run in runs]
        for label, found in zip((one, other), answers, strict=True):
            if not found.keys() >= NEEDED:
                raise NotFoundError(f"{label} kept no answers to its queries; run it again with this version.")
        names = answers[0]["class_names"]
        labels = {int(row): int(kind) for row, kind in zip(answers[0]["rows"], answers[0]["labels"], strict=True)}
        rights = [_right(found, labels) for found in answers]
        common = sorted(set(rights[0]) & set(rights[1]))
        only = [row for row in common if rights[0][row] and not rights[1][row]]
        lost = [row for row in common if rights[1][row] and not rights[0][row]]
        chosen = [row for pair in _zipped(only, lost) for row in pair][:count]
        drawn = self.pictures(bench, runs[0])
        return {
            "one": one,
            "other": other,
            "tally": {
                "both": sum(rights[0][row] and rights[1][row] for row in common),
                "one": len(only),
                "other": len(lost),
                "neither": sum(not rights[0][row] and not rights[1][row] for row in common),
            },
            "why": "" if drawn.pack is not None else drawn.why,
            "queries": [
                {
                    "row": row,
                    "label": _name(names, labels[row]),
                    "one": _near(answers[0], row, labels, names),
                    "other": _near(answers[1], row, labels, names),
                }
                for row in chosen
            ],
        }


def _experiment(bench: Bench, place: int) -> Experiment:
    tables = [table for table in bench.tables if table.labels]
    if not 0 <= place < len(tables):
        raise NotFoundError(f"There is no experiment {place}; choose one of {len(tables)}.")
    return tables[place]


def _right(answers: dict[str, Any], labels: dict[int, int]) -> dict[int, bool]:
    """For each query whether its nearest image is of its class."""
    nearest = np.asarray(answers["nearest"])[:, 0].tolist()
    rows = np.asarray(answers["rows"]).tolist()
    own = np.asarray(answers["labels"]).tolist()
    return {row: labels.get(near, -1) == kind for row, near, kind in zip(rows, nearest, own, strict=True)}


def _zipped(first: list[int], second: list[int]) -> list[list[int]]:
    """By turns from both, so that neither side fills the page."""
    longest = max(len(first), len(second))
    return [[*first[place : place + 1], *second[place : place + 1]] for place in range(longest)]


def _name(names: Any, kind: int) -> str:
    return str(names[kind]) if 0 <= kind < len(names) else ""


def _near(answers: dict[str, Any], row: int, labels: dict[int, int], names: Any) -> list[dict[str, Any]]:
    place = int(np.flatnonzero(np.asarray(answers["rows"]) == row)[0])
    found = []
    for near, cosine in zip(answers["nearest"][place][:SHOWN], answers["similarity"][place][:SHOWN], strict=True):
        kind = labels.get(int(near), -1)
        right = kind == labels[row] if kind >= 0 else None
        found.append(
            {"row": int(near), "label": _name(names, kind), "similarity": round(float(cosine), 4), "right": right}
        )
    return found

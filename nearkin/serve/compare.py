"""Queries of runs: those that fail worst, and those on which two runs differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import results as files
from nearkin.serve.images import Images, fits
from nearkin.serve.search import NotFoundError
from nearkin.serve.sources import Source, Sources
from nearkin.wording import feedback

NEEDED = {"rows", "labels", "nearest", "similarity"}
SHOWN = 8
OTHER = "the images of this data set are not those that were measured"


@dataclass(frozen=True)
class Answers:
    """What a run answered: for each query its row, whether its nearest image is of its class, and what it found."""

    source: Source
    rows: NDArray[np.int64]
    right: NDArray[np.bool_]
    near: NDArray[np.int64]
    similarity: NDArray[np.float32]
    classes: dict[int, int]
    names: list[str]

    def name(self, row: int) -> str:
        """The class of a test image; empty where it is not known."""
        kind = self.classes.get(row, -1)
        return str(self.names[kind]) if 0 <= kind < len(self.names) else ""

    def hits(self, place: int) -> list[dict[str, Any]]:
        """What the query at that place found, best first."""
        own = self.classes.get(int(self.rows[place]), -1)
        found = []
        for near, cosine in zip(
            self.near[place, :SHOWN].tolist(), self.similarity[place, :SHOWN].tolist(), strict=True
        ):
            kind = self.classes.get(near, -1)
            same = kind == own if kind >= 0 and own >= 0 else None
            found.append({"row": near, "label": self.name(near), "similarity": round(cosine, 4), "right": same})
        return found


def answers(source: Source, images: Images | None = None) -> Answers:
    """The answers of a run; with its images at hand also the classes of those that asked nothing themselves."""
    try:
        found = files.queries(Path(), source.result)
    except ValueError as error:  # a file that is torn or of another kind
        reason = error.__cause__ or error  # without the path, which is nothing to a page
        raise NotFoundError(f"The answers of {source.name} cannot be read: {reason}; run it again.") from None
    if not found.keys() >= NEEDED:
        raise NotFoundError(
            f"{source.name} kept no answers to its queries; a run keeps them when it is finished, with this version."
        )
    rows = np.asarray(found["rows"], np.int64)
    labels, near = np.asarray(found["labels"], np.int64), np.asarray(found["nearest"], np.int64)
    classes = dict(zip(rows.tolist(), labels.tolist(), strict=True))
    if images is not None and images.ready.is_set() and images.test is not None and fits(images.test, found):
        classes = dict(enumerate(np.asarray(images.test.labels).tolist()))
    if "recall@1" in found:
        right = np.asarray(found["recall@1"]) > 0.5
        known = np.isfinite(np.asarray(found["recall@1"], np.float64))  # a query without a relevant image has no score
    else:
        pairs = zip(near[:, 0].tolist(), labels.tolist(), strict=True)
        right = np.array([classes.get(one, -1) == kind for one, kind in pairs], bool)
        known = np.ones(len(rows), bool)
    similarity = np.asarray(found["similarity"], np.float32)
    names = [str(name) for name in found["class_names"]]
    return Answers(source, rows[known], right[known], near[known], similarity[known], classes, names)


class Compare:
    """Queries of the sources, with their test images where these can be read."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def pictures(self, source: Source) -> dict[str, Any]:
        """Whether the test images of a run can be shown, how far reading them is, or why not."""
        images = self.sources.images(source)
        said = images.facts()
        if said["state"] != "ready":
            return said
        if images.test is None:
            return {"state": "failed", "said": "the data set has no test images"}
        found = files.queries(Path(), source.result)
        if found.keys() >= NEEDED and not fits(images.test, found):
            return {"state": "failed", "said": OTHER}
        return said

    def worst(self, key: str, count: int) -> dict[str, Any]:
        """Queries of a run that fail, those with the fewest right neighbours and the surest mistakes first."""
        source = self.sources.find(key)
        found = answers(source, self.sources.images(source))
        own = np.array([found.classes.get(row, -1) for row in found.rows.tolist()], np.int64)
        near = np.array([[found.classes.get(one, -2) for one in row] for row in found.near.tolist()], np.int64)
        shared = (near == own[:, None]).sum(1) if len(own) else np.zeros(0, np.int64)
        order = np.lexsort((-found.similarity[:, 0], shared)) if len(own) else np.zeros(0, np.int64)
        failing = [int(place) for place in order if not found.right[place]]
        return {
            "name": _named(source),
            "asked": len(found.rows),
            "failed": len(failing),
            "pictures": self.pictures(source),
            "queries": [_query(found, place, hits=found.hits(place)) for place in failing[:count]],
        }

    def queries(self, one: str, other: str, count: int) -> dict[str, Any]:
        """Queries on which two runs differ: by turns those that only ``one`` gets right, and only ``other``."""
        sources = [self.sources.find(key) for key in (one, other)]
        first, second = (answers(source, self.sources.images(source)) for source in sources)
        _same(first, second)
        rights = [dict(zip(found.rows.tolist(), found.right.tolist(), strict=True)) for found in (first, second)]
        places = [{row: place for place, row in enumerate(found.rows.tolist())} for found in (first, second)]
        common = sorted(set(rights[0]) & set(rights[1]))
        only = [row for row in common if rights[0][row] and not rights[1][row]]
        lost = [row for row in common if rights[1][row] and not rights[0][row]]
        chosen = [row for pair in _zipped(only, lost) for row in pair][:count]
        return {
            "one": _named(sources[0]),
            "other": _named(sources[1]),
            "tally": {
                "both": sum(rights[0][row] and rights[1][row] for row in common),
                "one": len(only),
                "other": len(lost),
                "neither": sum(not rights[0][row] and not rights[1][row] for row in common),
            },
            "difference": _difference(*sources),
            "pictures": self.pictures(sources[0]),
            "queries": [
                _query(first, places[0][row], one=first.hits(places[0][row]), other=second.hits(places[1][row]))
                for row in chosen
            ],
        }


def _named(source: Source) -> str:
    """What a run is called where numbers stand beside its name."""
    return source.name + feedback(source.result.protocol)


def _query(found: Answers, place: int, **rest: Any) -> dict[str, Any]:
    row = int(found.rows[place])
    return {"row": row, "label": found.name(row), **rest}


def _same(first: Answers, second: Answers) -> None:
    """Rows mean the same images only if both runs were asked the same queries."""
    labels = [[found.name(row) for row in found.rows.tolist()] for found in (first, second)]
    if len(first.rows) != len(second.rows):
        what = f"{len(first.rows):,} and {len(second.rows):,} queries"
    elif not np.array_equal(np.sort(first.rows), np.sort(second.rows)) or sorted(labels[0]) != sorted(labels[1]):
        what = "different queries"
    else:
        return
    raise ValueError(
        f"Runs side by side must have been asked the same queries, got {what} from {first.source.name} and "
        f"{second.source.name}; choose two that were tested on the same images."
    )


def _difference(one: Source, other: Source) -> dict[str, Any] | None:
    """Recall@1 of one less the other, with an interval over test classes; None where their queries do not tell."""
    from nearkin.tournament import bootstrap
    from nearkin.tournament.answers import gather

    if one.key == other.key:
        return None
    try:
        found = gather(Path(), [[one.result], [other.result]], "recall@1")
        if isinstance(found, str):
            return None
        drawn = bootstrap(found.sums, found.sizes)
    except (ValueError, ImportError, KeyError):
        return None
    between = (drawn.difference, drawn.difference_low, drawn.difference_high)
    value, low, high = (round(float(table[0, 1]), 6) for table in between)
    return {"value": value, "low": low, "high": high, "classes": found.classes}


def _zipped(first: list[int], second: list[int]) -> list[list[int]]:
    """By turns from both, so that neither side fills the page."""
    longest = max(len(first), len(second))
    return [[*first[place : place + 1], *second[place : place + 1]] for place in range(longest)]

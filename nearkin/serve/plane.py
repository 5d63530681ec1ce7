"""The index as a map: a place in the plane for every image, so that neighbours lie together.

Principal components are there at once. Where scikit-learn is installed, t-SNE of a part of the images (landmarks) follows;
the others are put between the landmarks they are most like. The result is kept beside the index, for the images it was
made of.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checkpoint
from nearkin.index import Index

FORMAT = 1
FOLDER = "map"
"""Of the index."""
LANDMARKS = 3000
NEAR = 5
BLOCK = 4096
ENOUGH = 8192
"""Images that say which way the principal components point; more would make the page wait and change nothing."""

Places = NDArray[np.float32]
Progress = Callable[[int, int], None]


class Plane:
    """The map of an index, made in the background and kept.

    - ``places``: (n, 2), within -1 ... 1; ``numbers``: ids of the images;
    - ``method``: what made it; ``final``: whether a better one is still being made.
    """

    def __init__(self, index: Index, folder: Path, background: bool = True) -> None:
        self.numbers = index.numbers()
        self.digest = _digest(self.numbers, index.manifest.model)
        self._file = folder / f"map-{self.digest}.npy"
        kept = self._kept()
        self.method, self.final = "t-SNE", True
        if kept is not None:
            self.places = kept
            return
        vectors = index.vectors()[1]
        self.places, self.method = _fitted(components(vectors)), "principal components"
        if _can_improve() and len(self.numbers) >= 8:
            self.final = False
            if background:
                threading.Thread(target=self._improve, args=(vectors,), daemon=True).start()

    def _improve(self, vectors: NDArray[np.float32], progress: Progress | None = None) -> None:
        try:
            places = _fitted(spread_out(vectors, progress=progress))
            self.places, self.method = places, "t-SNE"
            self._keep()
        except (ValueError, OSError, MemoryError):
            pass  # the first map stays, or is made again next time
        finally:
            self.final = True

    def _kept(self) -> Places | None:
        try:
            content = self._file.read_bytes()
        except OSError:
            return None
        wanted = len(self.numbers) * 8
        return np.frombuffer(content, np.float32).reshape(-1, 2) if len(content) == wanted else None

    def _keep(self) -> None:
        self._file.parent.mkdir(exist_ok=True)
        for old in self._file.parent.glob("map-*.npy"):
            old.unlink(missing_ok=True)
        checkpoint.replace(self._file, self.places.tobytes())


def keep(index: Index, progress: Progress | None = None) -> str:
    """Make the map of an index now and keep it beside it, so that the page shows it at once; the method it has."""
    made = Plane(index, index.folder / FOLDER, background=False)
    if not made.final:
        made._improve(index.vectors()[1], progress)
    return made.method


def components(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The first two principal components (n, 2); the sign of each makes its largest entry positive."""
    if not len(vectors):
        return np.zeros((0, 2))
    some = vectors[drawn(len(vectors), ENOUGH)]
    middle = some.mean(0, dtype=np.float64)
    spread = np.zeros((vectors.shape[1], vectors.shape[1]))
    for begin in range(0, len(some), BLOCK):
        part = some[begin : begin + BLOCK] - middle
        spread += part.T @ part
    axes = np.linalg.eigh(spread)[1][:, ::-1][:, :2]
    found = np.asarray((vectors - middle.astype(np.float32)) @ axes.astype(np.float32), np.float64)
    found *= np.sign(found[np.abs(found).argmax(0), np.arange(found.shape[1])])
    return np.pad(found, ((0, 0), (0, 2 - found.shape[1])))


def spread_out(
    vectors: NDArray[np.float32], landmarks: int = LANDMARKS, progress: Progress | None = None
) -> NDArray[np.float64]:
    """t-SNE (n, 2) of at most ``landmarks`` images; each other image lies among the landmarks it is most like."""
    from nearkin.report.embedding import flat

    chosen = drawn(len(vectors), landmarks)
    return between(vectors, chosen, np.asarray(flat(vectors[chosen])), progress)


def drawn(count: int, most: int) -> NDArray[np.int64]:
    """At most ``most`` of ``count`` images, the same ones each time."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def between(
    vectors: NDArray[np.float32],
    chosen: NDArray[np.int64],
    marks: NDArray[np.float64],
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Places (n, 2) of all images where those of the landmarks ``chosen`` are known."""
    if len(chosen) == len(vectors):
        return marks
    found = np.zeros((len(vectors), 2))
    # Each place is drawn from a few landmarks, so many would fall onto them; a little noise shows how many there are.
    noise = np.random.default_rng(1).normal(size=(len(vectors), 2)) * 0.004 * np.ptp(marks, axis=0).max()
    known = np.ascontiguousarray(vectors[chosen].T)
    for begin in range(0, len(vectors), BLOCK):
        likeness = vectors[begin : begin + BLOCK] @ known
        near = np.argpartition(likeness, -min(NEAR, len(chosen)), axis=1)[:, -NEAR:]
        weight = np.exp((np.take_along_axis(likeness, near, 1) - likeness.max(1, keepdims=True)) * 20)
        weight /= weight.sum(1, keepdims=True)
        # The heaviest landmark draws the others in: a mean over two far groups would lie between them, near neither.
        best = marks[np.take_along_axis(near, weight.argmax(1)[:, None], 1)[:, 0]]
        spot = (marks[near] * weight[:, :, None]).sum(1)
        found[begin : begin + BLOCK] = best + (spot - best) * 0.5
        if progress is not None:
            progress(min(begin + BLOCK, len(vectors)), len(vectors))
    found += noise
    found[chosen] = marks
    return found


def _fitted(places: NDArray[np.float64]) -> Places:
    """Within -1 ... 1, the longer side filling it."""
    if not len(places):
        return np.zeros((0, 2), np.float32)
    low, high = places.min(0), places.max(0)
    return np.asarray((places - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12), np.float32)


def _can_improve() -> bool:
    import importlib.util

    return importlib.util.find_spec("sklearn") is not None


def _digest(numbers: NDArray[np.int64], model: str) -> str:
    facts: list[Any] = [FORMAT, LANDMARKS, model]
    return hashlib.sha256(json.dumps(facts).encode() + numbers.tobytes()).hexdigest()[:16]

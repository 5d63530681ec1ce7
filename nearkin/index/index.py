"""An index: a folder of segments that is added to, taken from, searched and made compact."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checkpoint, checks
from nearkin.data.files import natural
from nearkin.index import segment as segments
from nearkin.index.change import Added, Change, Progress, clean
from nearkin.index.exact import nearest
from nearkin.index.hits import Hit
from nearkin.index.manifest import FILE, Manifest, Part, read, writing
from nearkin.index.rerank import METHODS, expand, reciprocal
from nearkin.index.rows import Row
from nearkin.index.segment import Segment

if TYPE_CHECKING:
    from nearkin.index.approximate import Approximate
    from nearkin.trained import Trained

AMONG = 200
"""Images that a second look by reciprocal neighbours puts into order."""


class Index:
    """A searchable collection of images. Open one with ``Index.open``, make one with ``Index.create``.

    What is open is a snapshot: later changes by this or another process show after ``reload``.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.segments = [Segment(folder / "segments" / part.name) for part in manifest.parts]
        self.alive = [_alive(part) for part in manifest.parts]
        self._places: dict[int, tuple[int, int]] | None = None

    # ------------------------------------------------------------------------------------------ opening

    @classmethod
    def create(cls, folder: str | Path, trained: Trained) -> Index:
        """An empty index that holds its network: it can be searched without the run."""
        place = Path(folder)
        if (place / FILE).exists():
            raise ValueError(
                f"out must be a new folder, got {str(folder)!r}, which holds an index; use nearkin index add."
            )
        if place.exists() and not place.is_dir():
            raise ValueError(f"out must be a folder, got {str(folder)!r}, which is a file; choose another.")
        if place.exists() and any(place.iterdir()):
            raise ValueError(f"out must be a new or empty folder, got {str(folder)!r}; choose another.")
        checkpoint.make_folder("out", place)
        (place / "segments").mkdir()
        trained.save(place / "model")
        Manifest(trained.dim, trained.digest).write(place)
        return cls.open(place)

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        place = Path(folder)
        return cls(place, read(place))

    def reload(self) -> None:
        """See what has changed since."""
        self.__init__(self.folder, read(self.folder))  # type: ignore[misc]

    def model(self, device: str = "auto") -> Trained:
        """The network that the vectors come from."""
        from nearkin.trained import load

        return load(self.folder / "model", device)

    def check_model(self, trained: Trained) -> None:
        """Raise unless a network is the one that the vectors come from."""
        if trained.digest != self.manifest.model:
            raise ValueError(
                "the run must be the one the index was built with, got another: vectors of two networks cannot be "
                "compared; build an index with this run."
            )

    def verify(self) -> None:
        """Read everything once and raise unless it is what was written."""
        for part in self.manifest.parts:
            segments.verify(self.folder / "segments" / part.name, part.sums)

    # ------------------------------------------------------------------------------------------ reading

    def __len__(self) -> int:
        return sum(part.size - len(part.gone) for part in self.manifest.parts)

    @property
    def dim(self) -> int:
        return self.manifest.dim

    def rows(self) -> Iterator[Row]:
        """Every image, oldest first."""
        for opened, alive in zip(self.segments, self.alive, strict=True):
            for place, row in enumerate(opened.rows):
                if alive is None or alive[place]:
                    yield row

    def row(self, number: int) -> Row:
        """The image of that number."""
        part, place = self._place(number)
        return self.segments[part].rows[place]

    def vector(self, number: int) -> NDArray[np.float32]:
        part, place = self._place(number)
        return np.array(self.segments[part].vectors[place])

    def numbers(self) -> NDArray[np.int64]:
        """Numbers (n,) of all images, oldest first."""
        found = [np.empty(0, np.int64)]
        for opened, alive in zip(self.segments, self.alive, strict=True):
            found.append(np.asarray(opened.numbers)[slice(None) if alive is None else alive])
        return np.concatenate(found)

    def vectors(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Numbers (n,) and vectors (n, dim) of all images, in memory."""
        vectors = [np.empty((0, self.dim), np.float32)]
        for opened, alive in zip(self.segments, self.alive, strict=True):
            vectors.append(np.asarray(opened.vectors)[slice(None) if alive is None else alive])
        return self.numbers(), np.concatenate(vectors)

    def thumbnail(self, number: int) -> bytes:
        """A small WebP picture of an image."""
        part, place = self._place(number)
        return self.segments[part].thumbnail(place)

    def labels(self) -> dict[str, int]:
        """How many images each class has, in the order of names, numbers in them as numbers."""
        counts: dict[str, int] = {}
        for row in self.rows():
            counts[row.label] = counts.get(row.label, 0) + 1
        return dict(sorted(counts.items(), key=lambda entry: natural(entry[0])))

    def _place(self, number: int) -> tuple[int, int]:
        if self._places is None:
            self._places = {
                int(found): (part, place)
                for part, (opened, alive) in enumerate(zip(self.segments, self.alive, strict=True))
                for place, found in enumerate(opened.numbers)
                if alive is None or alive[place]
            }
        if number not in self._places:
            raise ValueError(f"id must be that of an image of the index, got {number}; see nearkin index info.")
        return self._places[number]

    def check_label(self, label: str) -> None:
        """Raise unless an image of the index has this class; an empty index has none to ask for."""
        names = self.labels()
        if names and label not in names:
            near = difflib.get_close_matches(label, names, n=1, cutoff=0)[0]
            raise ValueError(f"label must be a class of the index, got {label!r}; did you mean {near!r}?")

    # ------------------------------------------------------------------------------------------ searching

    def search(
        self,
        vector: Any,
        k: int = 10,
        *,
        label: str | None = None,
        leave_out: Iterable[int] = (),
        again: str = "none",
        graph: Approximate | None = None,
    ) -> list[Hit]:
        """The ``k`` images nearest to a vector (dim,), best first; ``label``: of this class only.

        Only the vector's direction counts. It must come from the index's network, which ``Trained.search`` sees to: vectors
        of another network of the same size cannot be told apart here, and what they find means nothing.

        ``again``: "expansion" searches again with the first results added to the query, "reciprocal" puts the first
        results into the order of their mutual neighbours (`nearkin.index.rerank`); similarities stay those to the query.
        ``graph``: search this one instead of every vector; it goes with neither ``label`` nor ``again``.
        """
        query = _unit(vector, self.dim)
        checks.setting("search", "again", again, METHODS)
        if graph is not None:
            check_graph("graph", label, again)
            dropped = set(leave_out)
            numbers, scores = graph.nearest(query, min(k + len(dropped), len(self)))
            kept = ~np.isin(numbers[0], list(dropped))
            numbers, scores = numbers[:, kept][:, :k], scores[:, kept][:, :k]
        else:
            numbers, scores = self.nearest(query, k, label=label, leave_out=leave_out)
        if again != "none" and numbers[0, 0] >= 0:
            numbers, scores = self._again(query, k, again, label, leave_out)
        hits = []
        for number, score in zip(numbers[0].tolist(), scores[0].tolist(), strict=True):
            if number >= 0:
                row = self.row(number)
                hits.append(Hit(number, score, row.path, row.label))
        if label is not None and not hits:
            self.check_label(label)
        return hits

    def _again(
        self, query: NDArray[np.float32], k: int, again: str, label: str | None, leave_out: Iterable[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The second look: numbers and cosines to the query, (1, k) each."""
        limits: dict[str, Any] = {"label": label, "leave_out": tuple(leave_out)}
        first, _ = self.nearest(query, k if again == "expansion" else max(k, AMONG), **limits)
        numbers = first[first >= 0]
        vectors = np.stack([self.vector(int(number)) for number in numbers])
        if again == "expansion":
            numbers = self.nearest(expand(query, vectors), k, **limits)[0][0]
            numbers = numbers[numbers >= 0]
            vectors = np.stack([self.vector(int(number)) for number in numbers])
        else:
            order = np.argsort(reciprocal(np.concatenate([query, vectors]), 1)[0, 1:], kind="stable")[:k]
            numbers, vectors = numbers[order], vectors[order]
        return numbers[None], query @ vectors.T

    def nearest(
        self,
        queries: NDArray[np.float32],
        k: int,
        *,
        label: str | None = None,
        leave_out: Iterable[int] = (),
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Numbers and cosines (q, k) of the images nearest to each of q vectors; -1 where there are fewer."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}; ask for one image or more.")
        dropped = np.array(sorted(set(leave_out)), np.int64)
        blocks = []
        for opened, alive in zip(self.segments, self.alive, strict=True):
            counts = alive
            if label is not None:
                own = np.array([own == label for own in opened.rows.labels], bool)
                counts = own if counts is None else counts & own
            if len(dropped):
                kept = ~np.isin(opened.numbers, dropped)
                counts = kept if counts is None else counts & kept
            blocks.append((opened.vectors, np.asarray(opened.numbers), counts))
        return nearest(np.ascontiguousarray(queries, np.float32), blocks, k)

    # ------------------------------------------------------------------------------------------ writing

    def add(
        self,
        folder: str | Path,
        trained: Trained | None = None,
        *,
        progress: Progress | None = None,
        workers: int | None = None,
        prune: bool = False,
    ) -> Added:
        """Add the images at or below a path; those that are there unchanged are not embedded again.

        A changed file keeps its number. ``prune``: images below the path that are gone from the disk are removed. Stopped
        at any moment, the index holds what was finished by then, and adding again goes on.
        """
        with self._changing() as change:
            return change.add(Path(folder).resolve(), trained, progress, workers, prune)

    def remove(self, what: str | int | Iterable[int]) -> int:
        """Remove an image by its number or path, all below a folder, or those of several numbers; how many went."""
        with self._changing() as change:
            return change.remove(what)

    def compact(self) -> None:
        """Write what is left as new segments, and drop the old ones."""
        with self._changing() as change:
            change.compact()

    @contextmanager
    def _changing(self) -> Iterator[Change]:
        """What may be written while nobody else writes."""
        with writing(self.folder):
            clean(self.folder)
            self.reload()
            yield Change(self)


def check_graph(name: str, label: str | None, again: str) -> None:
    """Raise where a graph has no answer; ``name``: of the argument that asks for it."""
    if label is not None or again != "none":
        came = f"label {label!r}" if label is not None else f"again {again!r}"
        raise ValueError(
            f"search: {name} knows no label and looks once only, got {came}; leave out {name} to search every vector."
        )


def _unit(vector: Any, dim: int) -> NDArray[np.float32]:
    """A query (1, dim) of length 1."""
    try:
        numbers = np.asarray(vector, np.float64).reshape(1, -1)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"vector must be {dim} finite numbers, got {type(vector).__name__}; "
            f"embed an image first with Trained.embed, or use Trained.search."
        ) from None
    if numbers.shape[1] != dim:
        raise ValueError(
            f"vector must be {dim} finite numbers, got {numbers.shape[1]}; embed the query with the index's network."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"vector must be {dim} finite numbers, got some that are not finite; check the network that made it."
        )
    largest = np.abs(numbers).max()
    if not largest:
        raise ValueError(
            f"vector must be {dim} numbers that are not all 0, got zeros, which have no direction; "
            f"check the network that made it."
        )
    numbers = numbers / largest  # squares of very large and very small numbers are no numbers
    return (numbers / np.linalg.norm(numbers)).astype(np.float32)


def _alive(part: Part) -> NDArray[np.bool_] | None:
    """Which rows of a segment count; None for all."""
    if not part.gone:
        return None
    alive = np.ones(part.size, bool)
    alive[list(part.gone)] = False
    return alive

"""Changes of an index: images are added, replaced and removed, and what is left is made compact. One process at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nearkin.index import segment as segments
from nearkin.index.manifest import Manifest, Part, read
from nearkin.index.rows import Row, number_of, row_of
from nearkin.index.thumbnails import thumbnail

if TYPE_CHECKING:
    from nearkin.index.index import Index
    from nearkin.trained import Trained

Progress = Callable[[int, int], None]
CHUNK = 2048
"""Images of a segment: after so many the work so far is safe."""
MOST_PARTS = 32
MOST_GONE = 0.3


@dataclass(frozen=True)
class Added:
    """What adding did: how many images are new, changed and as they were, and which could not be read and why."""

    new: int
    changed: int
    unchanged: int
    bad: tuple[tuple[str, str], ...] = ()
    pruned: int = 0


class Change:
    """What can be done to an index while nobody else writes."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def add(
        self, root: Path, trained: Trained | None, progress: Progress | None, workers: int | None, prune: bool
    ) -> Added:
        """The images at or below a path, see ``Index.add``."""
        from nearkin.data.files import pictures

        paths = pictures(root)
        known = {row.path: row for row in self.index.rows()}
        wanted, changed, unchanged = [], 0, 0
        for path in paths:
            row = row_of(path, root)
            before = known.get(row.path)
            if before is not None and before.same_file(row):
                unchanged += 1
                continue
            changed += before is not None
            wanted.append(replace(row, id=before.id if before is not None else -1))
        bad: list[tuple[str, str]] = []
        if wanted:
            network = trained or self.index.model()
            if trained is not None:
                self.index.check_model(trained)
            self._embed(wanted, network, bad, progress, workers)
        pruned = self._prune(root, known, {str(path) for path in paths}) if prune else 0
        self._tidy()
        ruined = {path for path, _ in bad}
        lost = sum(row.path in ruined and row.id >= 0 for row in wanted)
        new = len(wanted) - changed - (len(bad) - lost)
        return Added(new, changed - lost, unchanged, tuple(bad), pruned)

    def _embed(
        self,
        wanted: list[Row],
        network: Trained,
        bad: list[tuple[str, str]],
        progress: Progress | None,
        workers: int | None,
    ) -> None:
        from nearkin.data.decode import BadImage
        from nearkin.data.decoders import read_images
        from nearkin.trained import BATCH

        done = 0
        for begin in range(0, len(wanted), CHUNK):
            part = wanted[begin : begin + CHUNK]
            rows: list[Row] = []
            vectors: list[NDArray[np.float32]] = []
            pictures: list[bytes] = []
            waiting: list[NDArray[np.uint8]] = []
            images = read_images([Path(row.path) for row in part], side=network.view.side or None, workers=workers)
            for row, pixels in zip(part, images, strict=True):
                done += 1
                if isinstance(pixels, BadImage):
                    bad.append((row.path, pixels.reason))
                else:
                    rows.append(row)
                    waiting.append(pixels)
                    pictures.append(thumbnail(pixels))
                if len(waiting) == BATCH:
                    vectors.append(network.embed_pixels(waiting))
                    waiting = []
                if progress is not None:
                    progress(done, len(wanted))
            vectors.append(network.embed_pixels(waiting))
            if rows:
                self.append(rows, np.concatenate(vectors), pictures)

    def append(self, rows: Sequence[Row], vectors: NDArray[np.float32], pictures: Sequence[bytes]) -> None:
        """Write a segment and name it in the manifest; rows that take the place of others hide these."""
        manifest = self.index.manifest
        next_id, numbered = manifest.next_id, []
        for row in rows:
            if row.id < 0:
                row, next_id = replace(row, id=next_id), next_id + 1
            numbered.append(row)
        manifest = self._hide({row.id for row in rows if row.id >= 0})
        name = f"{manifest.next_part:06d}"
        sums = segments.write(self.index.folder / "segments" / name, vectors, numbered, pictures)
        manifest.with_part(Part(name, len(numbered), sums), next_id).write(self.index.folder)
        self.index.reload()

    def _hide(self, numbers: set[int]) -> Manifest:
        """The manifest with these images gone."""
        if not numbers:
            return self.index.manifest
        parts = []
        for part, opened in zip(self.index.manifest.parts, self.index.segments, strict=True):
            places = [place for place, row in enumerate(opened.rows) if row.id in numbers]
            parts.append(replace(part, gone=tuple(sorted({*part.gone, *places}))))
        return replace(self.index.manifest, parts=tuple(parts))

    def _prune(self, root: Path, known: dict[str, Row], there: set[str]) -> int:
        lost = {row.id for path, row in known.items() if Path(path).is_relative_to(root) and path not in there}
        if lost:
            self._hide(lost).write(self.index.folder)
            self.index.reload()
        return len(lost)

    def remove(self, what: str | int | Iterable[int]) -> int:
        """Some images, see ``Index.remove``."""
        chosen = self._chosen(what)
        self._hide(chosen).write(self.index.folder)
        self.index.reload()
        self._tidy()
        return len(chosen)

    def _chosen(self, what: str | int | Iterable[int]) -> set[int]:
        if isinstance(what, str):
            number = number_of(what)
            if number is None:
                return self._at(what)
            what = number
        numbers = {what} if isinstance(what, int) else {int(each) for each in what}
        missing = sorted(numbers - {row.id for row in self.index.rows()})
        if missing:
            raise ValueError(
                f"what must be ids of images of the index, got {missing[0]}, which is none; nothing removed."
            )
        return numbers

    def _at(self, place: str) -> set[int]:
        """The images at or below a path."""
        path = Path(place).resolve()
        found = {row.id for row in self.index.rows() if Path(row.path).is_relative_to(path)}
        if not found:
            raise ValueError(f"what must be an id, a path or a folder of the index, got {place!r}; nothing removed.")
        return found

    def _tidy(self) -> None:
        """Make compact where many segments are small, or many rows are gone."""
        total = sum(part.size for part in self.index.manifest.parts)
        gone = sum(len(part.gone) for part in self.index.manifest.parts)
        small = sum(part.size < CHUNK // 2 for part in self.index.manifest.parts)
        if small > MOST_PARTS or (total and gone > MOST_GONE * total):
            self.compact()

    def compact(self) -> None:
        """Write what is left as new segments, and drop the old ones."""
        manifest = replace(self.index.manifest, parts=())
        kept = [
            (part, place)
            for part, (opened, alive) in enumerate(zip(self.index.segments, self.index.alive, strict=True))
            for place in range(len(opened))
            if alive is None or alive[place]
        ]
        kept.sort(key=lambda at: self.index.segments[at[0]].rows[at[1]].id)
        size = 16 * CHUNK
        for begin in range(0, len(kept), size):
            chosen = kept[begin : begin + size]
            rows = [self.index.segments[part].rows[place] for part, place in chosen]
            vectors = np.stack([self.index.segments[part].vectors[place] for part, place in chosen])
            pictures = [self.index.segments[part].thumbnail(place) for part, place in chosen]
            name = f"{manifest.next_part:06d}"
            sums = segments.write(self.index.folder / "segments" / name, vectors, rows, pictures)
            manifest = manifest.with_part(Part(name, len(rows), sums), manifest.next_id)
        manifest.write(self.index.folder)
        self.index.reload()
        clean(self.index.folder)


def clean(folder: Path) -> None:
    """Drop segments that no manifest names: of writers that were killed, or compacted away."""
    named = {part.name for part in read(folder).parts}
    for path in (folder / "segments").iterdir():
        if path.name not in named:
            shutil.rmtree(path, ignore_errors=True)

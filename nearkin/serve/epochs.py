"""The way of a run's images from epoch to epoch, for runs that kept their embeddings; made in the background and kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import checkpoint, checks
from nearkin.data.pack import Pack
from nearkin.records import records
from nearkin.report.pictures import thumbnail
from nearkin.serve import way
from nearkin.serve.folders import Folders
from nearkin.serve.images import Images, Library, Progress
from nearkin.serve.search import NotFoundError
from nearkin.train import epochs, prepare
from nearkin.train.folder import RunFolder
from nearkin.wording import feedback

FORMAT = 1
FILE = "places.safetensors"
"""Beside the vectors in the folder of the run."""


class Epochs:
    """The runs that were given and kept their embeddings."""

    def __init__(self, folders: Folders) -> None:
        self.folders, self.library = folders, Library()
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Any, Way]] = {}

    def names(self) -> list[str]:
        return [name for name, path in self.folders.paths.items() if (path / epochs.FOLDER).is_dir()]

    def find(self, name: str) -> Way:
        """The way of a run, which begins to be made now; another one once the run has kept more epochs."""
        if name not in self.names():
            raise NotFoundError(checks.unknown("run with kept epochs", name, self.names()))
        path = self.folders.paths[name]
        stamp = (path / epochs.FOLDER).stat().st_mtime_ns, (path / "metrics.json").is_file()
        with self._lock:
            known = self._known.get(name)
            if known is not None and (known[0] == stamp or not known[1].ready.is_set()):
                return known[1]
            found = epochs.kept(path)
            # What was laid out is kept in the same folder, which changes it: only other epochs are a reason to begin anew.
            same = known is not None and known[1].kept == found and not known[1].why
            way = known[1] if known is not None and same else Way(path, found, self.library.of(path))
            self._known[name] = stamp, way
            return way


class Way:
    """Places and recalls of a run's images at every epoch.

    - ``places`` (epochs, n, 2) and ``recall`` (epochs, classes), once ``ready`` is set and ``why`` is empty;
    - ``kinds`` (n,): place of each image's class among ``names``, -1 where it is not known.
    """

    def __init__(self, run: Path, kept: list[epochs.Kept], images: Images) -> None:
        self.run, self.kept, self.images = run, kept, images
        self.part = kept[-1].images if kept else ""
        self.progress, self.ready, self.why = Progress(), threading.Event(), ""
        self.pack: Pack | None = None
        self.no_pictures = ""
        self.kinds: NDArray[np.int32] = np.zeros(0, np.int32)
        self.names: list[str] = []
        self.places: NDArray[np.float32] = np.zeros((0, 0, 2), np.float32)
        self.recall: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        threading.Thread(target=self._make, daemon=True).start()

    def facts(self) -> dict[str, Any]:
        """What the page says: how far it is, or the epochs with their measures and the classes with their sizes."""
        if not self.ready.is_set():
            now = self.progress if self.progress.job else self.images.progress
            return {"state": "making", "said": now.job, "done": now.done, "total": now.total}
        if self.why:
            return {"state": "failed", "said": self.why}
        sizes = np.bincount(self.kinds[self.kinds >= 0], minlength=len(self.names)).tolist()
        said, measured = self._measured()
        return {
            "state": "ready",
            "said": self.no_pictures,
            "pictures": self.pack is not None,
            "part": self.part,
            "images": len(self.kinds),
            "classes": [list(pair) for pair in zip(self.names, sizes, strict=True)],
            "metric": said + self._word(),
            "word": self._word(),
            "epochs": [{"epoch": one.moment.epoch + 1, "value": measured.get(one.moment.epoch)} for one in self.kept],
        }

    def points(self) -> bytes:
        """Every image in 8 bytes: its number and the place of its class (int32); then x and y (float32) by epoch."""
        self._needed()
        return np.stack([np.arange(len(self.kinds)), self.kinds], 1).astype("<i4").tobytes() + self.places.tobytes()

    def recalls(self) -> list[list[float | None]]:
        """Recall@1 of every class at every epoch."""
        self._needed()
        rows = self.recall.round(4).tolist()
        return [[value if math.isfinite(value) else None for value in row] for row in rows]

    def picture(self, row: int) -> tuple[bytes, str]:
        """A small picture of an image and its media type."""
        self._needed()
        if self.pack is None or not 0 <= row < len(self.pack):
            raise NotFoundError(f"There is no picture {row}; {self.no_pictures or 'it may have been removed'}.")
        content, kind, _ = thumbnail(self.pack.image(row))
        return content, f"image/{kind}"

    def _needed(self) -> None:
        if not self.ready.is_set() or self.why:
            raise NotFoundError(f"The epochs of this run cannot be shown: {self.why or 'they are being laid out'}.")

    # ------------------------------------------------------------------------------------------ in the background

    def _make(self) -> None:
        try:
            self._check()
            count = len(self.kept[-1].vectors())
            self.images.ready.wait()
            self.progress.begin("laying out the epochs", len(self.kept))
            self._know(count)
            if not self._read():
                self._lay_out()
        except Exception as error:  # whatever is wrong with the files of the run, the page says it
            self.why = str(error).strip().rstrip(".") or type(error).__name__
        finally:
            self.ready.set()

    def _check(self) -> None:
        if not self.kept:
            raise ValueError("no epoch has been kept yet")
        if self._sealed():
            raise ValueError("the run has not chosen its epoch yet, and nobody looks at its test images before")

    def _sealed(self) -> bool:
        settings = RunFolder(self.run).settings()
        return (
            (settings.validates or settings.audits)
            and self.part == "test"
            and not (self.run / "metrics.json").is_file()
        )

    def _word(self) -> str:
        """What stands after numbers of these images where they choose the epoch."""
        return feedback(RunFolder(self.run).settings().protocol) if self.part == "test" else ""

    def _know(self, count: int) -> None:
        """Classes and pictures, where the data set can be read and is the one that was measured."""
        pack, self.no_pictures = self.images.test, self.images.why
        if self.part == "validation" and self.images.train is not None:
            pack = prepare.parts(RunFolder(self.run).settings(), self.images.train)[1]
        if pack is not None and len(pack) != count:
            pack, self.no_pictures = None, "the images of the data set are not those that were measured"
        self.pack, self.kinds = pack, np.full(count, -1, np.int32)
        if pack is not None:
            present, kinds = np.unique(np.asarray(pack.labels), return_inverse=True)
            self.kinds, self.names = kinds.astype(np.int32), [pack.class_names[label] for label in present]

    def _lay_out(self) -> None:
        found: list[NDArray[np.float32]] = []
        query = None if self.pack is None or self.pack.query is None else np.asarray(self.pack.query)
        labels = self.kinds.astype(np.int64)

        def reader(one: epochs.Kept) -> Any:
            def read() -> NDArray[np.float32]:
                vectors = one.vectors()
                if len(vectors) != len(labels):
                    raise ValueError("the epochs that were kept are not of the same images")
                found.append(way.recalls(vectors, labels, len(self.names), query))
                return vectors

            return read

        self.places = way.places([reader(one) for one in self.kept], self.progress.tell)
        self.recall = np.stack(found[::-1])
        self._write()

    # ------------------------------------------------------------------------------------------ kept

    def _digest(self) -> str:
        from nearkin.report.embedding import _method

        files = [[one.path.name, one.path.stat().st_size, one.path.stat().st_mtime_ns] for one in self.kept]
        facts = [FORMAT, way.LANDMARKS, way.EXAGGERATION, way.STEPS, _method(), files, self.names]
        return hashlib.sha256(json.dumps(facts).encode() + self.kinds.tobytes()).hexdigest()[:16]

    def _read(self) -> bool:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.run / epochs.FOLDER / FILE, "numpy") as file:
                if (file.metadata() or {}).get("digest") != self._digest():
                    return False
                self.places, self.recall = file.get_tensor("places"), file.get_tensor("recall")
                return True
        except (OSError, SafetensorError):
            return False

    def _write(self) -> None:
        from safetensors.numpy import save

        arrays: dict[str, Any] = {"places": self.places, "recall": self.recall}
        with contextlib.suppress(OSError):  # made again next time
            checkpoint.replace(self.run / epochs.FOLDER / FILE, save(arrays, {"digest": self._digest()}))

    def _measured(self) -> tuple[str, dict[int, float]]:
        """The name of the first measure, and its value at the epochs of which it is known."""
        from nearkin.results import heading

        name = f"recall@{RunFolder(self.run).settings().ks[0]}"
        log = records(self.run / "log.jsonl", steps=False)
        if self.part == "validation":
            log = [record for record in log if record.get("kind") == "validate"]
        else:
            log = [*records(self.run / "audit.jsonl"), *log]
            log = [record for record in log if record.get("kind") in ("audit", "evaluate", "test")]
        found = {record["epoch"]: record[name] for record in log if name in record and "epoch" in record}
        return heading(name), {int(epoch): round(float(value), 6) for epoch, value in found.items()}

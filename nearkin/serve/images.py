"""The images that a run trained and tested on, decoded in the background: whoever waits for them sees how far it is."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.data.pack import Pack
from nearkin.distributed import Ranks
from nearkin.serve.search import NotFoundError
from nearkin.train import prepare
from nearkin.train.folder import RunFolder
from nearkin.train.screen import Screen, Tell
from nearkin.train.settings import Train

AGAIN = 30.0
"""Seconds after which images that could not be read are tried again by whoever asks."""


@dataclass
class Progress:
    """How far a piece of work is: its name, and how much of how much; ``total`` 0 where that is not known."""

    job: str = ""
    done: int = 0
    total: int = 0

    def tell(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    def begin(self, job: str, total: int = 0) -> None:
        self.job, self.done, self.total = job, 0, total


class _Told(Screen):
    """What reading a data set says, kept where the page can ask for it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    @contextmanager
    def job(self, text: str) -> Iterator[Tell]:
        self.progress.begin(text)
        yield self.progress.tell


class Images:
    """Training and test images of a data set. ``why`` says in words why there are none."""

    def __init__(self, settings: Train | None, why: str = "") -> None:
        self.why = why
        self.train: Pack | None = None
        self.test: Pack | None = None
        self.began = time.monotonic()
        self.progress = Progress()
        self.ready = threading.Event()
        if settings is None:
            self.ready.set()
        else:
            threading.Thread(target=self._read, args=(settings,), daemon=True).start()

    def facts(self) -> dict[str, Any]:
        """What the page says about them."""
        if not self.ready.is_set():
            now = self.progress
            return {"state": "reading", "said": now.job, "done": now.done, "total": now.total}
        return {"state": "failed", "said": self.why} if self.why else {"state": "ready", "said": ""}

    def picture(self, part: str, row: int) -> tuple[bytes, str]:
        """A small picture of an image and its media type."""
        from nearkin.report.pictures import thumbnail

        if not self.ready.is_set():
            raise NotFoundError("The images of this run are still being read; ask again in a moment.")
        pack = self.train if part == "training" else self.test
        if pack is None or not 0 <= row < len(pack):
            raise NotFoundError(f"There is no {part} image {row}; {self.why or 'it may have been removed'}.")
        content, kind, _ = thumbnail(pack.image(row))
        return content, f"image/{kind}"

    def _read(self, settings: Train) -> None:
        try:
            self.train, self.test = prepare.packs(settings, Ranks(), _Told(self.progress))
            if self.test is None and self.train is None:
                self.why = "the data set has no images"
        except Exception as error:  # whatever is wrong with the data set, the page says it
            self.why = str(error).strip().rstrip(".") or type(error).__name__
        finally:
            self.ready.set()


class Library:
    """The images of every run that was asked for; runs on the same data share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Images] = {}

    def of(self, path: Path) -> Images:
        """The images of the run in a folder, which begin to be read now if they were not before."""
        settings, key, why = None, str(path), ""
        try:
            settings = RunFolder(path).settings()
            key = identity(settings)
        except (ValueError, TypeError, OSError) as error:
            why = str(error).strip().rstrip(".")
            if not (path / "config.toml").is_file():  # said without the path, which is nobody's business far away
                why = "the folder of the run has no config.toml, so its data set is not known"
        with self._lock:
            held = self._held.get(key)
            # What was missing may have come since.
            if held is None or (held.why and time.monotonic() - held.began > AGAIN):
                self._held[key] = Images(settings, why)
            return self._held[key]


def identity(settings: Train) -> str:
    """What runs must share to have the same images."""
    return json.dumps(
        [settings.data, settings.root, settings.data_settings, settings.packs, settings.side], sort_keys=True
    )


def fits(pack: Pack, answers: dict[str, Any]) -> bool:
    """Whether these are the images that a run was measured on."""
    rows, nearest = np.asarray(answers["rows"]), np.asarray(answers["nearest"])
    inside = len(rows) and rows.max() < len(pack) and nearest.max(initial=-1) < len(pack)
    return bool(inside) and np.array_equal(np.asarray(pack.labels)[rows], answers["labels"])

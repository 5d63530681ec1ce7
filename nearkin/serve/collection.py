"""The index as the server holds it: open, as new as the disk, with its network in memory."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearkin.index import Index
from nearkin.index.manifest import FILE
from nearkin.trained import FACTS

if TYPE_CHECKING:
    from nearkin.trained import Trained


class Collection:
    """An index and what is derived from it. A change on the disk shows with the next request.

    What is open is never changed, another takes its place: a request sees one state from beginning to end.
    """

    def __init__(self, folder: str | Path, device: str = "cpu") -> None:
        self.folder, self.device = Path(folder), device
        self._lock = threading.Lock()
        self._embedding = threading.Lock()
        self._model: Trained | None = None
        self._stamp = self._changed()
        self._index = Index.open(self.folder)
        self._facts: dict[str, Any] | None = None

    @property
    def index(self) -> Index:
        """The index as it is now."""
        with self._lock:
            stamp = self._changed()
            if stamp != self._stamp:
                self._index, self._stamp, self._facts = Index.open(self.folder), stamp, None
            return self._index

    def model(self) -> Trained:
        with self._embedding:
            if self._model is None:
                self._model = self._index.model(self.device)
            return self._model

    def embed(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The unit vector (dim,) of an image that is decoded already."""
        from nearkin.data.decode import shrink

        model = self.model()
        with self._embedding:
            return model.embed_pixels([shrink(pixels, model.view.side or None)])[0]

    def facts(self) -> dict[str, Any]:
        """What the page says about the index."""
        index = self.index
        with self._lock:
            if self._facts is None:
                model = json.loads((self.folder / "model" / FACTS).read_bytes())
                known = model["facts"]
                self._facts = {
                    "name": self.folder.resolve().name,
                    "images": len(index),
                    "dim": index.dim,
                    "network": model["network"]["name"],
                    "loss": known.get("loss", ""),
                    "data": known.get("data", ""),
                    "classes": [[name, count] for name, count in index.labels().items() if name],
                }
            return self._facts

    def _changed(self) -> tuple[int, int]:
        try:
            found = (self.folder / FILE).stat()
        except OSError:  # Index.open says what is wrong
            return (0, 0)
        return found.st_mtime_ns, found.st_size

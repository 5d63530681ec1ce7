"""A trained embedding, ready to use: images in, unit vectors out.

>>> import nearkin
>>> found = nearkin.load("runs/x")                           # doctest: +SKIP
>>> vectors = found.embed(["a.jpg", "b.jpg"])                # doctest: +SKIP
>>> found.search("a.jpg", "my.index", k=5)                   # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from nearkin import checkpoint

if TYPE_CHECKING:
    from nearkin.index.hits import Hit
    from nearkin.models import Embedder

FORMAT = 1
FACTS = "nearkin.json"
WEIGHTS = "model.safetensors"
BATCH = 64
Progress = Callable[[int, int], None]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class View:
    """What of an image the network sees: the shorter side at most ``side``, then a centre crop; ``side`` 0 keeps sizes."""

    geometry: str = "crop"
    size: int = 224
    resize: int = 256
    side: int = 256


class Trained:
    """A network with its weights and its view of images.

    - ``model``: the network, a ``models.Embedder``; ``view``: how images are cut for it;
    - ``facts``: plain words about where it comes from (loss, data set, measures);
    - ``dim``: the size of its vectors.
    """

    def __init__(self, model: Embedder, view: View, facts: dict[str, Any], device: torch.device) -> None:
        self.model, self.view, self.facts, self.device = model.to(device).eval(), view, facts, device

    @property
    def dim(self) -> int:
        return self.model.total

    @property
    def digest(self) -> str:
        """Short name of network, weights and view: vectors of equal digests can be compared."""
        import hashlib

        found = hashlib.sha256(json.dumps([self.model.settings, asdict(self.view)], sort_keys=True).encode())
        for name, value in self.model.state_dict().items():
            found.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
        return found.hexdigest()[:16]

    # ------------------------------------------------------------------------------------------ use

    def embed(self, images: Any, progress: Progress | None = None) -> NDArray[np.float32]:
        """Unit vectors (n, dim) of images: paths, Pillow images or arrays (height, width, 3) of uint8, or one of them.

        An image that cannot be read raises ``BadImage``, which says which one and why.
        """
        sources = [images] if _single(images) else list(images)
        parts = [np.empty((0, self.dim), np.float32)]
        for begin in range(0, len(sources), BATCH):
            pixels = [self.pixels(source) for source in sources[begin : begin + BATCH]]
            parts.append(self.embed_pixels(pixels))
            if progress is not None:
                progress(min(begin + BATCH, len(sources)), len(sources))
        return np.concatenate(parts)

    def pixels(self, source: Any) -> Pixels:
        """An image as it lies in a pack: (height, width, 3) of uint8, upright, shrunk."""
        from nearkin.data.decode import from_pillow, read_image, shrink

        side = self.view.side or None
        if isinstance(source, (str, os.PathLike, bytes)):
            return read_image(source if isinstance(source, bytes) else Path(source), side=side)
        if hasattr(source, "convert"):  # a Pillow image
            return from_pillow(source, side=side)
        array = np.asarray(source)
        if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
            raise TypeError(
                f"an image must be a path, a Pillow image or uint8 pixels (height, width, 3), got {array.dtype} of shape "
                f"{array.shape}; convert it."
            )
        if array.ndim == 2 or array.shape[2] == 1:
            array = np.repeat(array.reshape(*array.shape[:2], 1), 3, axis=2)
        return shrink(array, side)

    @torch.no_grad()
    def embed_pixels(self, images: Sequence[Pixels]) -> NDArray[np.float32]:
        """Unit vectors of images that are decoded and shrunk already."""
        from nearkin.data.feed import Feed
        from nearkin.data.geometry import Geometry
        from nearkin.data.pack import pack
        from nearkin.data.table import ImageTable

        if not len(images):
            return np.empty((0, self.dim), np.float32)
        table = ImageTable(list(images), np.zeros(len(images), np.int64), ("",))
        cropping = Geometry(self.view.geometry, size=self.view.size, resize=self.view.resize)
        kind = next(self.model.parameters()).dtype
        feed = Feed(
            pack(table, None, side=None, workers=0),
            cropping,
            mean=self.model.mean,
            std=self.model.std,
            device=self.device,
            dtype=kind,
            resident=False,
        )
        parts = [self.model.embed(pictures).float().cpu().numpy() for pictures, _, _ in feed.test(batch=BATCH)]
        return np.concatenate(parts)

    def search(self, image: Any, index: Any, k: int = 10) -> list[Hit]:
        """The ``k`` images of an index (an ``Index`` or its path) that are nearest to an image."""
        from nearkin.index import Index

        opened = index if isinstance(index, Index) else Index.open(index)
        opened.check_model(self)
        return opened.search(self.embed(image)[0], k)

    # ------------------------------------------------------------------------------------------ files

    def save(self, folder: str | Path) -> None:
        """Write weights and facts into a folder, from which ``nearkin.load`` makes the same again."""
        from safetensors.torch import save

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().cpu().contiguous() for name, value in self.model.state_dict().items()}
        checkpoint.replace(place / WEIGHTS, save(weights))
        facts = {"format": FORMAT, "network": self.model.settings, "view": asdict(self.view), "facts": self.facts}
        checkpoint.replace(place / FACTS, json.dumps(facts, indent=1).encode())


def load(path: str | Path, device: str = "auto") -> Trained:
    """The trained embedding of a run folder, or of a folder that ``Trained.save`` or ``nearkin export`` wrote."""
    from nearkin.train import prepare

    place, target = Path(path), prepare.device(device)
    if (place / "config.toml").exists():
        return _from_run(place, target)
    if not (place / FACTS).exists():
        raise ValueError(
            f"path must be the folder of a run or of an exported model, got {str(path)!r}; train one with nearkin train."
        )
    from safetensors.torch import load_file

    from nearkin import models

    facts = json.loads((place / FACTS).read_bytes())
    if facts["format"] != FORMAT:
        raise ValueError(
            f"{place / FACTS} must have format {FORMAT}, got {facts['format']}; export it again with this version."
        )
    model = models.create(**facts["network"])
    model.load_state_dict(load_file(place / WEIGHTS))
    return Trained(model, View(**facts["view"]), facts["facts"], target)


def _from_run(place: Path, device: torch.device) -> Trained:
    from nearkin.train.folder import RunFolder
    from nearkin.train.restore import restore, unfinished

    settings, model = restore(place, device)
    size = settings.test_size or settings.size
    view = View(settings.geometry, size, max(settings.test_resize or settings.resize, size), settings.side)
    measured = RunFolder(place).metrics()
    facts = {
        "loss": settings.loss,
        "loss_settings": settings.loss_settings,
        "data": settings.data,
        "network": settings.network,
        "protocol": settings.protocol,
        "recipe": settings.recipe,
        "seed": settings.seed,
        "digest": settings.digest,
        "unfinished": unfinished(place),
        "shared_classes": measured.get("shared_classes"),
        "measures": {name: value for name, value in measured.items() if isinstance(value, float)},
    }
    return Trained(model.float(), view, facts, device)


def _single(images: Any) -> bool:
    if isinstance(images, (str, os.PathLike, bytes)) or hasattr(images, "convert"):
        return True
    return (isinstance(images, np.ndarray) and images.ndim in (2, 3)) or not isinstance(images, Iterable)

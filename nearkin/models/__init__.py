"""Networks that turn images into embeddings, by name.

``create("resnet50", dim=512, weights="resnet50.safetensors")`` makes one; ``MODELS`` lists them. Any network of timm
goes by "timm:" and its name there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nearkin import checks
from nearkin.models import weights as pretrained
from nearkin.models.backbone import Backbone
from nearkin.models.bn_inception import bn_inception
from nearkin.models.digits import digits
from nearkin.models.efficientnet_lite import efficientnet_lite0, efficientnet_lite1, efficientnet_lite2
from nearkin.models.embedder import Embedder, Head
from nearkin.models.googlenet import googlenet
from nearkin.models.pooling import POOLINGS
from nearkin.models.resnet import resnet18, resnet50
from nearkin.models.small import small
from nearkin.models.timm_network import PREFIX, takes_one_size, timm_network
from nearkin.models.weights import load_backbone


@dataclass(frozen=True)
class Model:
    """A line of the table of networks."""

    build: Callable[..., Backbone]
    summary: str
    one_size: bool = False
    """Whether it takes images of the size it was made for only."""


MODELS: dict[str, Model] = {
    "small": Model(small, "three convolutions for small images on a CPU; no pretrained weights", True),
    "digits": Model(digits, "two convolutions for small grey images, such as MNIST's; no pretrained weights", True),
    "efficientnet_lite0": Model(efficientnet_lite0, "3.4 M parameters, 224 pixels; weights in a package"),
    "efficientnet_lite1": Model(efficientnet_lite1, "4.1 M parameters, 240 pixels; weights in a package"),
    "efficientnet_lite2": Model(efficientnet_lite2, "4.8 M parameters, 260 pixels; weights in a package"),
    "resnet18": Model(resnet18, "11.2 M parameters, 224 pixels; torchvision's names"),
    "resnet50": Model(resnet50, "23.5 M parameters, 224 pixels; torchvision's names, stride on 3x3 or first 1x1"),
    "googlenet": Model(googlenet, "5.6 M parameters, 224 pixels; GoogLeNet with batch norm, torchvision's names"),
    "bn_inception": Model(bn_inception, "10.3 M parameters, 224 pixels; GoogLeNet V2, names of the Caffe weights"),
}


def names() -> list[str]:
    """The names ``create`` takes, besides "timm:" and a name of timm.

    >>> names()[:2]
    ['small', 'digits']
    """
    return list(MODELS)


def of_one_size(name: str) -> bool:
    """Whether the network of this name takes images of the size it was made for only.

    >>> of_one_size("small"), of_one_size("resnet50")
    (True, False)
    """
    if name.startswith(PREFIX):
        return takes_one_size(name.removeprefix(PREFIX))
    return name in MODELS and MODELS[name].one_size


def create(
    name: str,
    *,
    dim: int = 512,
    levels: str | Sequence[str] | None = None,
    pooling: str | None = None,
    weights: str | Path | None = None,
    frozen_batch_norm: bool = False,
    seed: int | None = None,
    **settings: Any,
) -> Embedder:
    """A network with heads, by name.

    - ``dim``: dimensions of the embedding, of each level where there are several;
    - ``levels``: None for the last, "lmh" for three heads as in ranked list loss, or names of levels;
    - ``pooling``: "gap", "gmp", "gap+gmp", "gem" or "none"; None for the network's own;
    - ``weights``: a safetensors file or a state dict, "package", "hub" or "hf:OWNER/NAME"; None for random ones. Where the
      file's metadata says for which ``mean``, ``std`` and ``stride`` it was trained, these are the defaults;
    - ``frozen_batch_norm``: batch norms keep their statistics in training;
    - ``seed``: of the layers that are drawn at random; None draws from torch's own generator;
    - further settings of the network: ``size``, ``mean``, ``std`` of all; ``stride`` of resnet50; ``grey`` of small;
      ``width`` of small and digits.

    A misspelt name or setting is an error that names the nearest right one.

    >>> lengths = create("small", dim=8, seed=0).embed(torch.rand(2, 3, 32, 32)).norm(dim=1)
    >>> torch.allclose(lengths, torch.ones(2))
    True
    """
    build, known = builder(name, settings)
    foreign = name.startswith(PREFIX)
    if seed is not None:
        checks.setting(name, "seed", seed, checks.SEED)
    loaded = None
    if foreign and weights == "hub":
        settings["pretrained"] = True
    elif weights is not None:
        loaded = pretrained.read(weights, name)
        settings = _agreed(name, loaded, settings, known)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        model = Embedder(
            build(**settings), dim=dim, levels=levels, pooling=pooling, frozen_batch_norm=frozen_batch_norm
        )
    if loaded is not None:
        pretrained.fit(model.backbone, loaded)
    return model


def builder(name: str, settings: Iterable[str]) -> tuple[Callable[..., Backbone], list[str]]:
    """What builds the network of this name, and which settings it takes; raise on a name or a setting that is not known."""
    if not isinstance(name, str):
        raise TypeError(
            f"network must be a name, got {type(name).__name__}; use models.Embedder for a network of your own."
        )
    if not (name in MODELS or name.startswith(PREFIX)):
        raise ValueError(checks.unknown("network", name, [*MODELS, PREFIX + "NAME"]))
    foreign = name.startswith(PREFIX)
    build = functools.partial(timm_network, name.removeprefix(PREFIX)) if foreign else MODELS[name].build
    known = [setting for setting in inspect.signature(build).parameters if setting not in ("name", "pretrained")]
    for setting in settings:
        if setting not in known:
            raise TypeError(checks.unknown(f"{name}: setting", setting, known))
    return build, known


def _agreed(name: str, loaded: pretrained.Weights, settings: dict[str, Any], known: list[str]) -> dict[str, Any]:
    """The settings, with what the weights say where they leave it open."""
    said = {key: value for key, value in pretrained.hints(loaded).items() if key in known}
    # Images may be normalised otherwise on purpose; a stride at the wrong place is a mistake that no shape shows.
    if "stride" in said and settings.get("stride", said["stride"]) != said["stride"]:
        raise ValueError(
            f"{name}: stride must be {said['stride']!r} for the weights {loaded.origin}, which were trained so, got "
            f"{settings['stride']!r}; leave stride out."
        )
    return said | settings


__all__ = [
    "MODELS",
    "POOLINGS",
    "Backbone",
    "Embedder",
    "Head",
    "Model",
    "create",
    "load_backbone",
    "names",
    "of_one_size",
]

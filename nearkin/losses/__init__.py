"""Every loss, by name. ``create("ranked_list", alpha=1.2)`` is the same as ``RankedList(alpha=1.2)``.

A loss is called with a batch: ``loss(embeddings, labels)``. Pair losses compare samples with each other, or with a
gallery; proxy losses compare them with proxies they learn, and need ``classes=`` and ``dim=``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from nearkin import checks
from nearkin.checks import Limit
from nearkin.engine import Sizes
from nearkin.losses import base, proxy_base
from nearkin.losses.angular import Angular
from nearkin.losses.arcface import ArcFace
from nearkin.losses.base import PairLoss
from nearkin.losses.binomial_deviance import BinomialDeviance
from nearkin.losses.circle import Circle
from nearkin.losses.contrastive import Contrastive
from nearkin.losses.cosface import CosFace
from nearkin.losses.histogram import Histogram
from nearkin.losses.lifted_structure import LiftedStructure
from nearkin.losses.margin import Margin
from nearkin.losses.multi_similarity import MultiSimilarity
from nearkin.losses.n_pair import NPair
from nearkin.losses.nra import NRA
from nearkin.losses.nt_xent import NTXent
from nearkin.losses.proxy_anchor import ProxyAnchor
from nearkin.losses.proxy_base import ProxyLoss
from nearkin.losses.proxy_nca import ProxyNCA
from nearkin.losses.proxy_repulsion import ProxyRepulsion
from nearkin.losses.quadruplet import Quadruplet
from nearkin.losses.ranked_list import RankedList
from nearkin.losses.recall_at_k import RecallAtK
from nearkin.losses.smooth_ap import SmoothAP
from nearkin.losses.soft_triple import SoftTriple
from nearkin.losses.softmax import Softmax
from nearkin.losses.spectral_clust import SpectralClust
from nearkin.losses.struct_clust import StructClust
from nearkin.losses.sub_center_arcface import SubCenterArcFace
from nearkin.losses.supcon import SupCon
from nearkin.losses.triplet import Triplet
from nearkin.miners import Mined
from nearkin.pairs import Few, split, take
from nearkin.space import COSINE, DOT, RAW_SQUARE, UNIT_DISTANCE, Space

Loss = PairLoss | ProxyLoss

_CLASSES: tuple[type[PairLoss] | type[ProxyLoss], ...] = (
    Contrastive,
    Triplet,
    NPair,
    LiftedStructure,
    BinomialDeviance,
    Margin,
    MultiSimilarity,
    RankedList,
    NRA,
    Histogram,
    Angular,
    Quadruplet,
    StructClust,
    SpectralClust,
    Circle,
    SupCon,
    NTXent,
    SmoothAP,
    RecallAtK,
    Softmax,
    ProxyNCA,
    ArcFace,
    CosFace,
    SubCenterArcFace,
    SoftTriple,
    ProxyAnchor,
    ProxyRepulsion,
)
# Every name a loss goes by; "raw" is the unified view's name for multi_similarity.
LOSSES: dict[str, type[PairLoss] | type[ProxyLoss]] = {cls.name: cls for cls in _CLASSES} | {"raw": MultiSimilarity}


def names() -> list[str]:
    """The names ``create`` takes.

    >>> "ranked_list" in names()
    True
    """
    return sorted(LOSSES)


def create(name: str, **settings: Any) -> Loss:
    """A loss by name; a misspelt name or setting is an error that names the nearest right one.

    >>> create("ranked_list", alpha=1.4).alpha
    1.4
    """
    if name not in LOSSES:
        raise ValueError(checks.unknown("loss", name, LOSSES))
    return LOSSES[name](**settings)


def example(name: str, settings: Mapping[str, Any], classes: int = 2, dim: int = 2) -> Loss:
    """A loss to look at, not to train with: numbers of classes and dimensions are made up where the settings have none.

    What it learns is drawn beside the random numbers of whoever asks, which stay as they are.

    >>> example("proxy_anchor", {"scale": 16}).proxies.shape
    torch.Size([2, 2])
    """
    if name not in LOSSES:
        raise ValueError(checks.unknown("loss", name, LOSSES))
    needed = {"classes": classes, "dim": dim} if issubclass(LOSSES[name], ProxyLoss) else {}
    with torch.random.fork_rng(devices=[]):
        return create(name, **{**needed, **settings})


def settings_of(name: str) -> list[str]:
    """What a loss may be told where nearkin trains, which gives number of classes, dimensions and rates by itself.

    >>> settings_of("triplet")
    ['distance', 'margin', 'normalize', 'miner', 'engine', 'reduction', 'seed']
    """
    cls = LOSSES[name]
    own = inspect.signature(cls).parameters.values()
    common = (proxy_base if issubclass(cls, ProxyLoss) else base).Common.__annotations__
    known = dict.fromkeys([*(entry.name for entry in own if entry.kind is entry.KEYWORD_ONLY), *common])
    return [key for key in known if key not in ("classes", "dim", "lr_multiplier")]


def resolved(name: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The one name of a loss and all its settings, which are equal where training with it is, however it was written.

    Defaults are filled in, and a number is the same with and without a point. A seed that is not given is left out: it is
    that of the run.

    >>> resolved("raw", {"alpha": 2}) == resolved("multi_similarity", {"gamma": 0.5})
    True
    """
    loss = example(name, settings)
    told = {*settings_of(name), *settings} - ({"seed"} - settings.keys())
    return loss.name, {key: _plain(value) for key, value in loss.settings.items() if key in told}


def _plain(value: Any) -> Any:
    """Whole numbers without a point, also in a list."""
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


__all__ = [
    "COSINE",
    "DOT",
    "LOSSES",
    "NRA",
    "RAW_SQUARE",
    "UNIT_DISTANCE",
    "Angular",
    "ArcFace",
    "BinomialDeviance",
    "Circle",
    "Contrastive",
    "CosFace",
    "Few",
    "Histogram",
    "LiftedStructure",
    "Limit",
    "Loss",
    "Margin",
    "Mined",
    "MultiSimilarity",
    "NPair",
    "NTXent",
    "PairLoss",
    "ProxyAnchor",
    "ProxyLoss",
    "ProxyNCA",
    "ProxyRepulsion",
    "Quadruplet",
    "RankedList",
    "RecallAtK",
    "Sizes",
    "SmoothAP",
    "SoftTriple",
    "Softmax",
    "Space",
    "SpectralClust",
    "StructClust",
    "SubCenterArcFace",
    "SupCon",
    "Triplet",
    "create",
    "example",
    "names",
    "resolved",
    "settings_of",
    "split",
    "take",
]

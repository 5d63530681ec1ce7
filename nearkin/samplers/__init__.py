"""Which rows make a batch. Each sampler is a list of batches for ``DataLoader(batch_sampler=...)``.

``create("pk", labels, classes=60, images=3)`` makes one by name; ``names()`` lists them.
"""

from __future__ import annotations

import inspect

from nearkin import checks
from nearkin.evaluation.inputs import Labels
from nearkin.samplers.batches import Batches
from nearkin.samplers.hard_class import HardClass
from nearkin.samplers.n_pair import NPair
from nearkin.samplers.pk import PK
from nearkin.samplers.random_batches import Random
from nearkin.samplers.smart import Smart

__all__ = ["PK", "SAMPLERS", "Batches", "HardClass", "NPair", "Random", "Smart", "create", "names"]

SAMPLERS: dict[str, type[Batches]] = {kind.name: kind for kind in (PK, NPair, Random, HardClass, Smart)}


def names() -> list[str]:
    """The names that ``create`` knows.

    >>> names()
    ['pk', 'n_pair', 'random', 'hard_class', 'smart']
    """
    return list(SAMPLERS)


def _unknown(name: str, setting: str, known: list[str]) -> str:
    """The sentence for a setting that a sampler does not know."""
    if setting in ("batch", "batch_size") and "batch" not in known:
        parts = (
            "classes x images; pass both" if "images" in known else "two images of each of its classes; pass classes"
        )
        return f"{name}: setting {setting!r} is not known: a batch is {parts} instead."
    return checks.unknown(f"{name}: setting", setting, known)


def create(name: str, labels: Labels, **settings: object) -> Batches:
    """The sampler of that name over ``labels`` (n,) integers.

    >>> create("random", [0, 1, 0, 1], batch=2).size
    2
    """
    if name not in SAMPLERS:
        raise ValueError(checks.unknown("sampler", name, SAMPLERS))
    known = [setting for setting in inspect.signature(SAMPLERS[name]).parameters if setting != "labels"]
    for setting in settings:
        if setting not in known:
            raise TypeError(_unknown(name, setting, known))
    return SAMPLERS[name](labels, **settings)  # type: ignore[arg-type]

"""What would show only after hours of training, looked for before the first step."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nearkin import advice
from nearkin.data.feed import Feed
from nearkin.data.pack import Pack
from nearkin.data.table import ImageTable
from nearkin.models import Embedder
from nearkin.models.weights import first_line
from nearkin.train import cache, prepare
from nearkin.train.objective import Objective
from nearkin.train.settings import Train

FROM_NOTHING = ("small", "digits")
"""Networks for which there are no pretrained weights, and that learn without."""


def check_images(settings: Train, training: Pack, testing: Pack | None) -> None:
    """Raise unless there is something to tell apart, and something to measure it on where that is asked for."""
    check_test_images(settings, testing)
    check_classes(settings, training.labels)


def doubts(settings: Train, testing: Pack | None, resume: bool) -> list[str]:
    """What is allowed and yet likely a mistake; of weights nothing more is said where a run goes on."""
    found = [] if resume else _doubts_of_weights(settings)
    return found + (_doubts_of_test(testing) if settings.test and testing else [])


def check_test_images(settings: Train, images: Pack | ImageTable | None, remedy: str = ", or pass --no-test") -> None:
    """Raise unless some image of the test set that asks has another one of its class to find; ``remedy``: what to do where
    there are no more images."""
    if not settings.test:
        return
    if images is None or not len(images):
        raise ValueError(f"the data set must have test images, got none; keep classes back{remedy}.")
    labels = np.asarray(images.labels)
    if images.query is None:
        found = bool((np.unique(labels, return_counts=True)[1] > 1).any())
    else:
        found = bool(np.isin(labels[images.query], labels[~images.query]).any())
    if not found:
        raise ValueError(
            f"the test images must give at least one query another image of its class to find, got none for "
            f"{len(labels)} images of {len(np.unique(labels))} classes; add images to the classes{remedy}."
        )


def check_classes(settings: Train, labels: NDArray[np.int64], remedy: str = "") -> None:
    """Raise where there is one class to train on: there is nothing to tell it from; ``remedy``: what lets more train."""
    classes = len(np.unique(labels))
    if classes < 2:
        more = "pass --data-settings split=all" if _may_take_all(settings) else "let more of them train"
        raise ValueError(
            f"the training images must be of at least 2 classes, got {classes}; add classes, or {remedy or more}."
        )


def _may_take_all(settings: Train) -> bool:
    """Whether a folder keeps classes back for the test that could train."""
    return settings.data == "folder" and settings.data_settings.get("split") != "all"


def _doubts_of_weights(settings: Train) -> list[str]:
    """A sentence where the network has to learn from nothing what it cannot learn from a few images."""
    if settings.weights or settings.network in FROM_NOTHING:
        return []
    where = ("--data", settings.data, *(("--root", settings.root) if settings.root else ()))
    return [
        f"{settings.network} starts from random weights, which wants far more images and steps than most have; "
        f"for a better model in less time: {advice.training(*where)}"
    ]


def _doubts_of_test(testing: Pack) -> list[str]:
    """A sentence where the measures of these test images are worth nothing."""
    if len(np.unique(testing.labels)) > 1:
        return []
    return ["the test set has 1 class, so every answer is right and the measures say nothing; test on at least 2."]


def check_test_size(settings: Train, model: Embedder, known: Feed, device: torch.device) -> None:
    """Raise unless the network takes an image of the size it will be measured and used at; one is tried."""
    feed = prepare.test_feed(settings, model, known.pack, device, known.resident)
    with prepare.autocast(settings, device):
        for pixels, _, _ in feed.test(np.arange(1)):
            _check_side("test_size", settings, model, pixels)


def check_network(settings: Train) -> None:
    """Raise unless the network can be made, takes images of the sizes it will see and, where a batch goes through it in
    chunks, can be trained so. No image is looked at, and no weights."""
    bare = replace(settings, weights="")
    if settings.network not in FROM_NOTHING:  # which are small
        # Shapes without numbers cost next to nothing; not every network of another library can be made of these alone.
        with contextlib.suppress(Exception), torch.device("meta"):
            return _check_made(bare)
    _check_made(bare)


def _check_made(settings: Train) -> None:
    model = prepare.model(settings)
    for name, side in (("size", settings.size), ("test_size", settings.test_size)):
        if side:
            _check_side(name, settings, model, torch.zeros(1, 3, side, side))
    if settings.chunk:
        cache.check(model.train())


def _check_side(name: str, settings: Train, model: Embedder, pixels: Tensor) -> None:
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            model.embed(pixels)
    except (AssertionError, RuntimeError, ValueError) as error:  # the network's own, which may be another library's
        raise ValueError(
            f"{name} must be a side of images that {settings.network} takes, got {pixels.shape[-1]}: "
            f"{first_line(error)!r}; set {name} to {model.size}."
        ) from error
    finally:
        model.train(was)


def check_memory(settings: Train) -> None:
    """Raise where samples of earlier batches are to be kept for a loss that cannot compare with them."""
    if settings.memory:
        Objective(settings.loss, settings.loss_settings, levels=("",), dim=settings.dim, classes=2, memory=1)


def check_batch(size: int) -> None:
    """Raise where a batch has one image: no loss compares it with anything."""
    if size < 2:
        raise ValueError(f"batch must be at least two images, which a loss compares, got {size}; raise batch.")

"""What would show only after hours of training, looked for before the first step."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from nearkin import advice
from nearkin.data.feed import Feed
from nearkin.data.pack import Pack
from nearkin.models import Embedder
from nearkin.models.weights import first_line
from nearkin.train import prepare
from nearkin.train.settings import Train

FROM_NOTHING = ("small", "digits")
"""Networks for which there are no pretrained weights, and that learn without."""


def check_images(settings: Train, training: Pack, testing: Pack | None) -> None:
    """Raise unless there is something to tell apart, and something to measure it on where that is asked for."""
    if settings.test and testing is None:
        raise ValueError("the data set must have test images, got none; keep classes back, or pass --no-test.")
    if settings.test and testing is not None:
        _check_measurable(testing)
    check_classes(settings, training.labels)


def doubts(settings: Train, testing: Pack | None, resume: bool) -> list[str]:
    """What is allowed and yet likely a mistake; of weights nothing more is said where a run goes on."""
    found = [] if resume else _doubts_of_weights(settings)
    return found + (_doubts_of_test(testing) if settings.test and testing else [])


def _check_measurable(images: Pack) -> None:
    """Raise unless some image of the test set that asks has another one of its class to find."""
    labels = np.asarray(images.labels)
    if images.query is None:
        found = bool((np.unique(labels, return_counts=True)[1] > 1).any())
    else:
        found = bool(np.isin(labels[images.query], labels[~images.query]).any())
    if not found:
        raise ValueError(
            f"the test images must give at least one query another image of its class to find, got none for "
            f"{len(labels)} images of {len(np.unique(labels))} classes; add images to the classes, or pass --no-test."
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
    was = model.training
    model.eval()
    try:
        with torch.no_grad(), prepare.autocast(settings, device):
            for pixels, _, _ in feed.test(np.arange(1)):
                model.embed(pixels)
    except (AssertionError, RuntimeError, ValueError) as error:  # the network's own, which may be another library's
        raise ValueError(
            f"test_size must be a side of images that {settings.network} takes, got "
            f"{settings.test_size or settings.size}: {first_line(error)!r}; set test_size to {model.size}."
        ) from error
    finally:
        model.train(was)


def check_batch(size: int) -> None:
    """Raise where a batch has one image: no loss compares it with anything."""
    if size < 2:
        raise ValueError(f"batch must be at least two images, which a loss compares, got {size}; raise batch.")

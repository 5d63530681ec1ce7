"""Where a trained network puts the images of the test set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nearkin.train.screen import Screen


@dataclass(frozen=True)
class Points:
    """Raw embeddings (n, 2) of test images, their labels (n,), and how much the images of each class differ."""

    places: Tensor
    labels: Tensor
    variance: Tensor


def draw(count: int, images: int, seed: int) -> NDArray[np.int64]:
    """Rows of ``count`` different test images of ``images``, in ascending order; the same for every loss.

    >>> draw(3, 10, 0).tolist() == draw(3, 10, 0).tolist(), len(set(draw(10, 10, 1).tolist()))
    (True, 10)
    """
    if count > images:
        raise ValueError(
            f"plane: points must be at most the number of test images, {images:,}, got {count:,}; lower points."
        )
    return np.sort(np.random.default_rng(seed).permutation(images)[:count]).astype(np.int64)


@torch.no_grad()
def points(run: Path, count: int, seed: int, screen: Screen, **machine: Any) -> Points:
    """Embed ``count`` test images drawn by ``seed`` with the network of a finished run, as they come out of it.

    ``machine``: what of root, packs, device and threads differs from the run.
    """
    from nearkin.train import prepare
    from nearkin.train.restore import restore

    device = prepare.device(machine.get("device", "auto"))
    settings, model = restore(run, device)
    settings = replace(settings, **machine)
    with prepare.machine(settings, device):
        images = prepare.test_pack(settings, screen)
        rows = draw(count, len(images), seed)
        feed = prepare.test_feed(settings, model, images, device)
        places, pixels = [], []
        with screen.job("embedding") as tell:
            for batch, _, _ in feed.test(rows):
                [found] = model(batch).values()
                places.append(found.float().cpu())
                pixels.append(batch.mean(1).flatten(1).float().cpu())
                tell(sum(map(len, places)), len(rows))
    labels = torch.from_numpy(np.array(images.labels)[rows])
    return Points(torch.cat(places), labels, _variance(torch.cat(pixels), labels, len(images.class_names)))


def _variance(pixels: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The mean squared distance of the images of each class to their mean (classes,); NaN for an absent class."""
    found = [pixels[labels == label].double() for label in range(classes)]
    return torch.stack([(own - own.mean(0)).square().sum(1).mean() for own in found])

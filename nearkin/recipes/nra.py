"""Deep Metric Learning using Similarities from Nonlinear Rank Approximations (2019).

    nearkin train --data cub200 --root CUB_200_2011 --recipe nra --weights googlenet.safetensors

Not run by us, neither result nor time: ImageNet weights of this network were not to be had. ``nearkin published nra
1`` has the paper's numbers, ``docs/cub.md`` the loss with a ResNet-50 and the default recipe.

Departures: the longer side is brought to 256 from a shorter side of 256 and padded to a square, so that crops of 224
fit; the paper does not say how it fills them. It does not give the number of steps; 10,000 is ours. ImageNet weights of
GoogLeNet must be given with ``--weights``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RATES = {"cub200": 1e-4, "cars196": 5e-4, "sop": 1e-3}


def settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    data = chosen.get("data", "")
    return {
        "network": "googlenet",
        "dim": 512,
        "pooling": "gap",
        "frozen_batch_norm": False,
        "loss": "nra",
        "sampler": "pk",
        "batch": 128,
        "images": 4 if data == "sop" else 8,
        "iterations": 10_000,
        "geometry": "longer_side",
        "size": 224,
        "resize": 256,
        "optimizer": "sgd",
        "momentum": 0.9,
        "weight_decay": 0.0,
        "lr": RATES.get(data, 1e-4),
        "head_multiplier": 1.0,
        "loss_multiplier": 1.0,
        "schedule": "constant",
        "warm_up": 0,
    }

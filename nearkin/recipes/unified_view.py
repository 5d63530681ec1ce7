"""A Unified View of Deep Metric Learning via Gradient Analysis: raw weights with thresholds mined by vthm.

    nearkin train --data cub200 --root CUB_200_2011 --recipe unified_view --weights bn_inception.safetensors

Not run by us, neither result nor time: ImageNet weights of this network were not to be had. ``nearkin published
unified_view 2`` has the paper's numbers, ``docs/cub.md`` the loss with a ResNet-50 and the default recipe.

Departures: images are squashed to 256 x 256 from a shorter side of 256; the paper does not give the number of epochs, 60 is
ours. ImageNet weights of GoogLeNet V2 must be given with ``--weights``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    network = chosen.get("network", "bn_inception")
    return {
        "network": network,
        "dim": 512,
        "pooling": "gap",
        "frozen_batch_norm": True,
        "loss": "raw",
        "sampler": "pk",
        "batch": 80,
        "images": 4 if chosen.get("data") in ("sop", "inshop") else 5,
        "epochs": 60,
        "geometry": "squash",
        "size": 224 if network.startswith("resnet") else 227,
        "resize": 256,
        "optimizer": "adam",
        "weight_decay": 0.0,
        "lr": 1e-5,
        "head_multiplier": 1.0,
        "loss_multiplier": 1.0,
        "schedule": "constant",
        "warm_up": 0,
    }

"""Ranked List Loss for Deep Metric Learning (CVPR 2019): the authors' training.

    nearkin train --data cub200 --root CUB_200_2011 --recipe ranked_list --weights bn_inception.safetensors

The paper prints R@1 61.3 on CUB-200-2011 for its L/M/H embedding with these settings. Not run by us, neither result
nor time: ImageNet weights of this network were not to be had. ``docs/cub.md`` has the loss with a ResNet-50 and the
default recipe.

Departures: images are kept at a shorter side of 256 and squashed to 256 x 256 from there, not from the original; ImageNet
weights of GoogLeNet V2 must be given with ``--weights``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    data = chosen.get("data", "")
    network = chosen.get("network", "bn_inception")
    return {
        "network": network,
        "levels": "lmh",
        "dim": 512,
        "pooling": "gap",
        "frozen_batch_norm": False,
        "loss": "ranked_list",
        "sampler": "pk",
        "batch": 180,
        "images": 3,
        "iterations": 16_000 if data == "sop" else 10_000,
        "geometry": "squash",
        "size": 224 if network.startswith("resnet") else 227,
        "resize": 256,
        "optimizer": "sgd",
        "momentum": 0.9,
        "weight_decay": 1e-5,
        "lr": 1e-3 if data == "cub200" else 1e-2,
        "head_multiplier": 10.0,
        "loss_multiplier": 10.0,
        "schedule": "constant",
        "warm_up": 0,
    }

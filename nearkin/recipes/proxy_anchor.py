"""Proxy Anchor Loss (CVPR 2020): the training of the authors' published code.

    nearkin train --data cub200 --root CUB_200_2011 --recipe proxy_anchor --weights resnet50.safetensors

141 s of training on an H200 that another run shared, 2,443 images a second; expect R@1 66.7 on the test classes of
CUB-200-2011 (last epoch, one seed; ``benchmarks/results/recipes.json``). The default recipe is faster and better there.

Departures: none known in the settings; images are cropped from a shorter side of 256. ImageNet weights must be given with
``--weights``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    data, network = chosen.get("data", ""), chosen.get("network", "resnet50")
    residual = network.startswith("resnet")
    return {
        "network": network,
        "dim": 512,
        "pooling": "gap+gmp",
        "frozen_batch_norm": data not in ("sop", "inshop"),
        "loss": "proxy_anchor",
        "sampler": "random",
        "batch": 120 if residual else 180,
        "epochs": 60,
        "geometry": "resized_crop",
        "crop_scale": (0.08, 1.0),
        "size": 224,
        "optimizer": "adamw",
        "lr": 1e-4,
        "weight_decay": 1e-4,
        "head_multiplier": 1.0,
        "loss_multiplier": 100.0,
        "clip_value": 10.0,
        "schedule": "step",
        "step_epochs": 5.0 if residual else 10.0,
        "gamma": 0.5,
        "warm_up": 5 if residual else 1,
    }

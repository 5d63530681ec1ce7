"""Metric Learning: A Deep Dive (2020): the thesis' default training and its settings of each loss.

    nearkin train --data cub200 --root CUB_200_2011 --recipe deep_dive --weights resnet50.safetensors

213 s of training on an H200 that another run shared for two thirds of it, 2,727 images a second; expect R@1 57.7 on the
test classes of CUB-200-2011 (proxy anchor, last epoch, one seed; ``benchmarks/results/recipes.json``).

That is far below the 69.5 of the thesis' Table 6, and not for the choice of the epoch: the thesis takes the best on the
test set, which was 58.0 here. The rest lies in what the thesis leaves open. It gives no learning rate for the proxies of
proxy anchor; here they learn as fast as the network, at a rate that falls to a tenth every 5 epochs, while the loss'
authors let them learn 100 times as fast (recipe ``proxy_anchor``). It is silent on weight decay, batch norm and pooling;
here these are AdamW's usual 0.01, statistics that follow the batches, and the average. The ImageNet weights may differ,
too. Which of these matters we have not measured.

Departures: the thesis resizes images to 256 without saying whether the aspect ratio is kept; here it is. Learning rates
of proxies and of beta are given there as numbers and here as multiples of the network's rate. ImageNet weights must be
given with ``--weights``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearkin import losses

# Settings of each loss, and the learning rate of what it learns.
LOSSES: dict[str, tuple[dict[str, Any], float | None]] = {
    "contrastive": ({"margin": 0.5}, None),
    "triplet": ({"margin": 0.1, "miner": "semihard"}, None),
    "lifted_structure": ({"form": "generalized", "margin": 0.5, "miner": "hard"}, None),
    "n_pair": ({"l2": 0.02}, None),
    "proxy_nca": ({}, 1e-5),
    "margin": ({"margin": 0.5, "beta": 1.2, "miner": "distance_weighted"}, 5e-5),
    "arcface": ({"degrees": 28.6, "scale": 64.0}, 1e-4),
    "multi_similarity": ({"gamma": 0.5, "alpha": 2.0, "beta": 50.0, "epsilon": 0.1}, None),
    "soft_triple": ({"margin": 0.1, "scale": 20.0, "gamma": 0.1, "tau": 0.2}, 1e-4),
    "proxy_anchor": ({"margin": 0.1, "scale": 32.0}, None),
}


def settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    data, network = chosen.get("data", ""), chosen.get("network", "resnet50")
    loss = chosen.get("loss", "proxy_anchor")
    kind = losses.LOSSES.get(loss)
    proxies = kind is not None and issubclass(kind, losses.ProxyLoss)  # which need no second image of a class
    residual = network.startswith("resnet")
    own, rate = LOSSES.get(loss, ({}, None))
    lr = float(chosen.get("lr", 6e-4 if data == "sop" else 1e-4))
    return {
        "network": network,
        "dim": 512,
        "pooling": "gap",
        "frozen_batch_norm": False,
        "loss": loss,
        "loss_settings": dict(own),
        "sampler": "random" if proxies else "pk",
        "batch": 100 if residual else 180,
        "images": 5,
        "epochs": 100,
        "geometry": "crop",
        "size": 224 if residual else 227,
        "resize": 256,
        "optimizer": "adamw",
        "lr": lr,
        "head_multiplier": 1.0,
        "loss_multiplier": 1.0 if rate is None else rate / lr,
        "weight_decay": 1e-2,
        "schedule": "step",
        "step_epochs": _step(data, residual),
        "gamma": 0.25 if data == "sop" else 0.1,
        "warm_up": 0,
    }


def _step(data: str, residual: bool) -> float:
    if data == "cub200":
        return 5.0 if residual else 10.0
    return 10.0 if residual else 20.0

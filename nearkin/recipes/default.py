"""Our own best: what to use when there is no paper to repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearkin import losses


def settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    loss = chosen.get("loss", "proxy_anchor")
    kind = losses.LOSSES.get(loss)
    if kind is None or issubclass(kind, losses.ProxyLoss):
        return {"loss": loss}
    return {
        "loss": loss,
        "sampler": "pk",
        "images": 3 if loss == "ranked_list" else 5,
        "lr": 1e-5,
        "weight_decay": 5e-4,
        "loss_multiplier": 10.0,
        "schedule": "constant",
        "crop_scale": (0.25, 1.0),
    }

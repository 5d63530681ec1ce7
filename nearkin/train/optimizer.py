"""What is optimised at which rate, and how the rate changes: a function of the step, so that nothing needs resuming."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from nearkin.models import Embedder
from nearkin.train.settings import Train, check_rates


def make(settings: Train, model: Embedder, loss: nn.Module) -> torch.optim.Optimizer:
    """The optimiser of network, heads and loss; each group keeps its highest rate under ``peak``.

    Parameters of the loss (proxies, beta) are always among them: forgotten proxies learn nothing and nobody notices.
    """
    check_rates(settings)
    groups = model.parameter_groups(settings.lr, settings.head_multiplier)
    learned = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    if learned:
        groups.append({"name": "loss", "params": learned, "lr": settings.lr * settings.loss_multiplier})
    for group in groups:
        group["peak"] = group["lr"]
    fused = {parameter.device.type for group in groups for parameter in group["params"]} == {"cuda"}
    options: dict[str, Any] = {"weight_decay": settings.weight_decay, "fused": fused}
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, **options)
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=settings.lr, **options)


def factor(settings: Train, step: int, per_epoch: int, steps: int) -> float:
    """The part of its highest rate at which everything learns in ``step`` (from 0) of ``steps``."""
    value = 1.0
    if settings.schedule == "cosine":
        value = 0.5 * (1 + math.cos(math.pi * step / steps))
    elif settings.schedule == "step":
        value = settings.gamma ** math.floor(step / (settings.step_epochs * per_epoch))
    if settings.ramp:
        value *= min(1.0, (step + 1) / (settings.ramp * steps))
    return value


def set_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * value


def clip(settings: Train, parameters: list[nn.Parameter]) -> None:
    """Cut gradients that are too long or have too large entries."""
    if settings.clip_value:
        nn.utils.clip_grad_value_(parameters, settings.clip_value)
    if settings.clip_norm:
        nn.utils.clip_grad_norm_(parameters, settings.clip_norm)

"""Gradient caching: a batch larger than memory, with the gradient of the whole batch (Gao 2021).

The images go through the network in chunks without a graph; the loss of all embeddings gives the gradient of each of
them; then each chunk goes through again, with a graph, and hands its gradients to the network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

Forward = Callable[[Tensor], Mapping[str, Tensor]]


def seed_of(*keys: object) -> int:
    """A number of 48 bits made of plain values, such as (seed, step, chunk).

    >>> seed_of(0, 1, 0) == seed_of(0, 1, 0), seed_of(0, 1, 0) == seed_of(0, 1, 1)
    (True, False)
    """
    return int.from_bytes(hashlib.blake2b(repr(keys).encode(), digest_size=6).digest(), "big")


def check(model: nn.Module) -> None:
    """Raise if a layer's result for one image depends on the others in its chunk."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            raise ValueError(
                f"chunk needs frozen batch norm, got {name} in training mode, whose result depends on the images of a "
                f"chunk; set frozen_batch_norm or leave chunk out."
            )


def cached_step(
    forward: Forward, images: Tensor, chunk: int, value_of: Callable[[Mapping[str, Tensor]], Tensor], *keys: object
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Loss of the batch and its embeddings, gradients left in the parameters as ``loss.backward()`` would.

    ``keys`` seed the random layers of each chunk, so that both passes draw the same.
    """
    parts = images.split(chunk)
    found = []
    with torch.no_grad():
        for number, part in enumerate(parts):
            torch.manual_seed(seed_of(*keys, number))
            found.append(forward(part))
    embeddings = {level: torch.cat([part[level] for part in found]).requires_grad_() for level in found[0]}
    del found
    value = value_of(embeddings)
    value.backward()
    start = 0
    for number, part in enumerate(parts):
        torch.manual_seed(seed_of(*keys, number))
        again = forward(part)
        rows = slice(start, start + len(part))
        wanted = {level: leaf.grad for level, leaf in embeddings.items() if leaf.grad is not None}
        torch.autograd.backward([again[level] for level in wanted], [grad[rows] for grad in wanted.values()])
        start += len(part)
    return value.detach(), {level: leaf.detach() for level, leaf in embeddings.items()}

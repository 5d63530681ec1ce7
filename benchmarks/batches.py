"""A batch of embeddings as training meets it, for every benchmark of losses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

DIM = 512
# Classes of one kind resemble each other more or less, as species of birds do.
CLASSES_OF_A_KIND = 8
MOST_KINDS = 32
LEAST, MOST = 0.5, 1.5
WAY = "kinds of classes"
"""How batches are made, as results name it; rows that name nothing were measured with a direction for each class alone."""

HINGED = {"ranked_list", "contrastive"}
"""Losses in which a negative counts only where it is near."""


def clustered(n: int, images: int, device: str = "cpu", seed: int = 0) -> tuple[Tensor, Tensor]:
    """Embeddings (n, 512), some positives of which are far and some negatives near, and labels.

    What a loss weighs must be among the pairs: of directions drawn for each class alone, none of two classes are near
    enough for the hinges of ranked_list or contrastive, which then have no negative to work on.
    """
    generator = torch.Generator(device).manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, device=device, generator=generator)

    labels = torch.arange(n, device=device) // images
    classes = -(-n // images)
    kinds = max(1, min(MOST_KINDS, classes // CLASSES_OF_A_KIND))
    kind = drawn(kinds, DIM)[torch.arange(classes, device=device) % kinds]
    likeness = torch.rand(classes, 1, device=device, generator=generator) * (MOST - LEAST) + LEAST
    centers = drawn(classes, DIM).mul_(0.7).addcmul_(kind, likeness)
    return drawn(n, DIM).add_(centers[labels]), labels


def told(rows: list[dict[str, Any]]) -> str:
    """What a page says of rows that were measured with other batches than are made now."""
    old = [row for row in rows if row.get("batch") != WAY]
    if not old:
        return ""
    which = "All rows" if len(old) == len(rows) else f"{len(old)} of {len(rows)} rows"
    hinged = {row["loss"].split(",")[0] for row in old} & HINGED
    weights = (
        f"but in {' and '.join(sorted(hinged))} no negative had a weight" if hinged else "and none is of these two"
    )
    return (
        f"{which} were measured with batches in which no negative is near enough for the hinges of ranked_list and "
        f"contrastive: the same passes over the same matrices, {weights}."
    )

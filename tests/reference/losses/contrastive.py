"""Contrastive loss."""

from torch import Tensor

from ..samples import Samples
from ..scalars import hinge


def contrastive(
    samples: Samples, *, distance: str = "cosine", margin: float | None = None, normalize: bool = True
) -> list[Tensor]:
    """Per-anchor values.

    cosine [DD 2.15, UV 5 with 1 - s]: l_i = sum_P (1 - s_ij) + sum_N [s_ij - margin]+, margin 0.5;
    euclidean [NRA 1]: l_i = sum_P d_ij^2 + sum_N ([margin - d_ij]+)^2, margin 1.0, raw f with
    normalize=False.
    """
    if distance not in ("cosine", "euclidean"):
        raise ValueError(f"unknown distance {distance!r}")
    if margin is None:
        margin = 0.5 if distance == "cosine" else 1.0
    values = []
    for i in samples.rows:
        value = samples.zero()
        for j in samples.positive[i]:
            if distance == "cosine":
                value = value + (1 - samples.cosine(i, j))
            elif normalize:
                value = value + samples.squared_distance(i, j)
            else:
                value = value + samples.raw_squared_distance(i, j)
        for j in samples.negative[i]:
            if distance == "cosine":
                value = value + hinge(samples.cosine(i, j) - margin)
            else:
                d = samples.distance(i, j) if normalize else samples.raw_distance(i, j)
                value = value + hinge(margin - d) ** 2
        values.append(value)
    return values

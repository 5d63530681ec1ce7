"""Triplet loss."""

from torch import Tensor

from ..samples import Samples
from ..scalars import hinge, mean


def triplet(
    samples: Samples, *, distance: str = "cosine", margin: float | None = None, normalize: bool = True
) -> Tensor:
    """One value: the mean over the triplets T, 0 without any.

    cosine [DD 2.17, UV 7]: [s_an - s_ap + margin]+, margin 0.1;
    euclidean [RLL 1, NRA 2]: [d_ap^2 - d_an^2 + margin]+, margin 0.2, raw f with normalize=False.
    """
    if distance not in ("cosine", "euclidean"):
        raise ValueError(f"unknown distance {distance!r}")
    if margin is None:
        margin = 0.1 if distance == "cosine" else 0.2
    known: dict[tuple[int, int], Tensor] = {}

    def dissimilarity(i: int, j: int) -> Tensor:
        if (i, j) not in known:
            if distance == "cosine":
                known[i, j] = -samples.cosine(i, j)
            elif normalize:
                known[i, j] = samples.squared_distance(i, j)
            else:
                known[i, j] = samples.raw_squared_distance(i, j)
        return known[i, j]

    terms = []
    for a, p, n in samples.triplet_list():
        terms.append(hinge(dissimilarity(a, p) - dissimilarity(a, n) + margin))
    return mean(terms, samples.zero())

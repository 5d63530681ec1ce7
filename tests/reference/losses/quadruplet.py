"""Quadruplet loss."""

from torch import Tensor

from ..samples import Samples


def quadruplet(samples: Samples, *, first_margin: float = 1.0, second_margin: float = 0.5) -> Tensor:
    """One value (Chen 2017): the mean over the quadruplets (a, p, n, n') of

    [d_ap^2 - d_an^2 + first_margin]+ + [d_ap^2 - d_nn'^2 + second_margin]+; 0 without any.
    (a, p, n) are the triplets of the samples, n' every column whose class differs from those of a and n.
    The hinges are linear where they are active, so the second one is counted first: how often each d_ap^2 and
    each d_nn'^2 occurs in an active term.
    """
    query: dict[tuple[int, int], Tensor] = {}
    query_value: dict[tuple[int, int], float] = {}
    for a, p, n in samples.triplet_list():
        for j in (p, n):
            if (a, j) not in query:
                query[a, j] = samples.squared_distance(a, j)
                query_value[a, j] = query[a, j].item()
    between: dict[tuple[int, int], Tensor] = {}
    between_value: dict[tuple[int, int], float] = {}
    for n in samples.columns:
        for other in samples.columns:
            if samples.gallery_labels[n] != samples.gallery_labels[other]:
                between[n, other] = samples.gallery_squared_distance(n, other)
                between_value[n, other] = between[n, other].item()

    value = samples.zero()
    quadruplets = active = 0
    query_count: dict[tuple[int, int], int] = {}
    between_count: dict[tuple[int, int], int] = {}
    for a, p, n in samples.triplet_list():
        classes = (samples.labels[a], samples.gallery_labels[n])
        others = [j for j in samples.columns if samples.gallery_labels[j] not in classes]
        quadruplets += len(others)
        if query_value[a, p] - query_value[a, n] + first_margin > 0:
            value = value + len(others) * (query[a, p] - query[a, n] + first_margin)
        for other in others:
            if query_value[a, p] - between_value[n, other] + second_margin > 0:
                active += 1
                query_count[a, p] = query_count.get((a, p), 0) + 1
                between_count[n, other] = between_count.get((n, other), 0) + 1
    for pair, count in query_count.items():
        value = value + count * query[pair]
    for pair, count in between_count.items():
        value = value - count * between[pair]
    value = value + active * second_margin
    return value / max(quadruplets, 1)

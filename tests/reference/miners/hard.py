"""Batch-hard triplets."""

from ..samples import Samples


def hard(samples: Samples) -> Samples:
    """For each a: the least similar positive and the most similar negative [DD 2.18-2.19].

    Ties go to the lowest column; an anchor that lacks one side has no triplet and keeps the other side as a pair.
    """
    triplets = []
    positive: list[list[int]] = []
    negative: list[list[int]] = []
    for a in samples.rows:
        p, p_s = -1, float("inf")
        for j in sorted(samples.positive[a]):
            s = samples.cosine(a, j).item()
            if s < p_s:
                p, p_s = j, s
        n, n_s = -1, -float("inf")
        for j in sorted(samples.negative[a]):
            s = samples.cosine(a, j).item()
            if s > n_s:
                n, n_s = j, s
        positive.append([p] if p >= 0 else [])
        negative.append([n] if n >= 0 else [])
        if p >= 0 and n >= 0:
            triplets.append((a, p, n))
    mined = samples.with_triplets(triplets)
    mined.positive, mined.negative = positive, negative
    return mined

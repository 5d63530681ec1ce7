"""Valid triplet based hard mining."""

from ..samples import Samples


def vthm(samples: Samples, margin: float = 0.1) -> Samples:
    """Negative j if s_ij > min_P s - margin, positive j if s_ij < max_N s + margin [UV 5.1].

    An anchor that lacks positives or negatives keeps nothing.
    """
    positive: list[list[int]] = []
    negative: list[list[int]] = []
    for i in samples.rows:
        s_positive = [samples.cosine(i, j).item() for j in samples.positive[i]]
        s_negative = [samples.cosine(i, j).item() for j in samples.negative[i]]
        if not s_positive or not s_negative:
            positive.append([])
            negative.append([])
            continue
        lowest, highest = min(s_positive), max(s_negative)
        pairs = zip(samples.positive[i], s_positive, strict=True)
        positive.append([j for j, s in pairs if s < highest + margin])
        pairs = zip(samples.negative[i], s_negative, strict=True)
        negative.append([j for j, s in pairs if s > lowest - margin])
    return samples.with_pairs(positive, negative)

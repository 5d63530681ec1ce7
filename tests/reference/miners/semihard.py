"""Semi-hard triplets."""

from ..samples import Samples


def semihard(samples: Samples, fallback: str | None = None) -> Samples:
    """For each (a, p): argmax { s_an : s_an < s_ap } [DD 2.20]; ties go to the lowest column.

    Without such an n: no triplet, or with fallback="easiest" the negative of lowest s_an (ties: lowest
    column).
    """
    if fallback not in (None, "easiest"):
        raise ValueError(f"unknown fallback {fallback!r}")
    triplets = []
    for a in samples.rows:
        for p in samples.positive[a]:
            s_ap = samples.cosine(a, p).item()
            chosen, chosen_s = -1, -float("inf")
            easiest, easiest_s = -1, float("inf")
            for n in sorted(samples.negative[a]):
                s_an = samples.cosine(a, n).item()
                if s_an < s_ap and s_an > chosen_s:
                    chosen, chosen_s = n, s_an
                if s_an < easiest_s:
                    easiest, easiest_s = n, s_an
            if chosen < 0 and fallback == "easiest":
                chosen = easiest
            if chosen >= 0:
                triplets.append((a, p, chosen))
    return samples.with_triplets(triplets)

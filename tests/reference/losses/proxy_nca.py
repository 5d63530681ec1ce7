"""Proxy NCA with static or dynamic assignment."""

from torch import Tensor

from ..samples import Samples
from ..scalars import log_sum_exp, mean, squared_distance, unit_vector


def proxy_nca(samples: Samples, proxies: Tensor, *, scale: float = 3.0, assignment: str = "static") -> list[Tensor]:
    """Per-anchor values [RLL 4-5 with squared distances, DD 2.27], q = scale^2, unit x and w:

    static: -log( e^{-q |x_i - w_y|^2} / sum_{z != y} e^{-q |x_i - w_z|^2} ), the positive not in the
    denominator, 0 with a single proxy;
    dynamic: p(u) = the proxy nearest to gallery point u (a constant, ties to the lowest index); the mean over
    u in P_i of -log( e^{-q |x_i - w_p(u)|^2} / sum_r e^{-q |x_i - w_r|^2} ), r over the distinct p(z), z in
    N_i, with p(z) != p(u). An empty denominator makes the term 0.
    """
    zero = samples.zero()
    q = scale**2
    weights = [unit_vector(w) for w in proxies]
    values = []
    if assignment == "static":
        for i in samples.rows:
            logits = [-q * squared_distance(samples.unit(i), w) for w in weights]
            target = logits.pop(samples.labels[i])
            values.append(log_sum_exp(logits) - target if logits else zero)
        return values
    if assignment != "dynamic":
        raise ValueError(f"unknown assignment {assignment!r}")
    nearest = []
    for u in samples.columns:
        best, best_value = -1, float("inf")
        for r, w in enumerate(weights):
            value = squared_distance(samples.gallery_unit(u), w).item()
            if value < best_value:
                best, best_value = r, value
        nearest.append(best)
    for i in samples.rows:
        logits = [-q * squared_distance(samples.unit(i), w) for w in weights]
        negative = sorted({nearest[z] for z in samples.negative[i]})
        terms = []
        for u in samples.positive[i]:
            others = [logits[r] for r in negative if r != nearest[u]]
            terms.append(log_sum_exp(others) - logits[nearest[u]] if others else zero)
        values.append(mean(terms, zero))
    return values

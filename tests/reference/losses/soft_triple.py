"""SoftTriple loss."""

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import distance, log_sum_exp, target_cross_entropy, unit_vector


def relaxed_similarity(cosines: list[Tensor], gamma: float, zero: Tensor) -> Tensor:
    """S_c = sum_k softmax_k(x.w_c^k / gamma) x.w_c^k."""
    normaliser = log_sum_exp([cosine / gamma for cosine in cosines])
    result = zero
    for cosine in cosines:
        result = result + torch.exp(cosine / gamma - normaliser) * cosine
    return result


def soft_triple(
    samples: Samples,
    proxies: Tensor,
    *,
    centers: int | None = None,
    scale: float = 20.0,
    gamma: float = 0.1,
    margin: float = 0.01,
    tau: float = 0.2,
) -> list[Tensor]:
    """Per-anchor values (Qian 2019, [DD 2.30]); the regulariser is added to each, so that their mean has it
    once:

    -log e^{a(S_y - margin)} / (e^{a(S_y - margin)} + sum_{j != y} e^{a S_j})
    + tau / (C K (K-1)) sum_c sum_{t<u} sqrt(2 - 2 w_c^t.w_c^u), a = scale, 0 for K = 1.
    `proxies` is (classes, centers, dim), which says the number of centres; `centers` only checks it.
    """
    classes, K = proxies.shape[0], proxies.shape[1]
    if centers is not None and centers != K:
        raise ValueError("the proxies have another number of centres")
    zero = samples.zero()
    weights = [[unit_vector(w) for w in group] for group in proxies]
    regulariser = zero
    for group in weights:
        for u in range(K):
            for t in range(u):
                regulariser = regulariser + tau / (classes * K * (K - 1)) * distance(group[t], group[u])
    values = []
    for i in samples.rows:
        x = samples.unit(i)
        cosines = [[torch.dot(x, w) for w in group] for group in weights]
        similarities = [relaxed_similarity(row, gamma, zero) for row in cosines]
        target = scale * (similarities.pop(samples.labels[i]) - margin)
        entropy = target_cross_entropy(target, [scale * s for s in similarities], zero)
        values.append(entropy + regulariser)
    return values

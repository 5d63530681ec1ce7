"""Softmax cross-entropy over class proxies."""

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import target_cross_entropy, unit_vector


def softmax(samples: Samples, proxies: Tensor, *, normalized: bool = False, scale: float = 20.0) -> list[Tensor]:
    """Per-anchor values [DD 2.26]: cross-entropy over f_i . w_j (raw f and w, no bias).

    normalized=True: over scale * x_i . w_j, both unit vectors.
    """
    zero = samples.zero()
    weights = [unit_vector(w) if normalized else w for w in proxies]
    values = []
    for i in samples.rows:
        query = scale * samples.unit(i) if normalized else samples.query_rows[i]
        logits = [torch.dot(query, w) for w in weights]
        target = logits.pop(samples.labels[i])
        values.append(target_cross_entropy(target, logits, zero))
    return values

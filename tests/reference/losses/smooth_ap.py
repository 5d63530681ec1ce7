"""Smooth average precision."""

import torch
from torch import Tensor

from ..samples import Samples


def smooth_ap(samples: Samples, *, temperature: float = 0.01) -> list[Tensor]:
    """Per-anchor values (Brown 2020, the query not its own positive); 0 without positives:

    1 - 1/|P_i| sum_{p in P} (1 + sum_{j in P, j != p} g_jp) / (1 + sum_{j in P, j != p} g_jp + sum_N g_kp),
    g_jp = sigmoid((s_ij - s_ip) / temperature); j != p compares columns.
    """
    values = []
    for i in samples.rows:
        if not samples.positive[i]:
            values.append(samples.zero())
            continue
        s = {j: samples.cosine(i, j) for j in samples.positive[i] + samples.negative[i]}
        precision = samples.zero()
        for p in samples.positive[i]:
            above = 1 + samples.zero()
            for j in samples.positive[i]:
                if j != p:
                    above = above + torch.sigmoid((s[j] - s[p]) / temperature)
            rank = above
            for k in samples.negative[i]:
                rank = rank + torch.sigmoid((s[k] - s[p]) / temperature)
            precision = precision + above / rank
        values.append(1 - precision / len(samples.positive[i]))
    return values

"""Recall at k surrogate."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import mean


def recall_at_k(
    samples: Samples, *, ks: Sequence[int] = (1, 2, 4, 8, 16), t1: float = 1.0, t2: float = 0.01
) -> list[Tensor]:
    """Per-anchor values (Patel 2022); 0 without positives:

    1 - mean over k of min(1, sum_{p in P} sigmoid((k - r_p)/t1) / min(k, |P_i|)),
    r_p = 1 + sum_{j != p} sigmoid((s_ij - s_ip)/t2), j over P_i and N_i.
    """
    zero = samples.zero()
    values = []
    for i in samples.rows:
        if not samples.positive[i]:
            values.append(zero)
            continue
        columns = samples.positive[i] + samples.negative[i]
        s = {j: samples.cosine(i, j) for j in columns}
        ranks = []
        for p in samples.positive[i]:
            rank = 1 + zero
            for j in columns:
                if j != p:
                    rank = rank + torch.sigmoid((s[j] - s[p]) / t2)
            ranks.append(rank)
        recalls = []
        for k in ks:
            found = zero
            for rank in ranks:
                found = found + torch.sigmoid((k - rank) / t1)
            recall = found / min(k, len(ranks))
            recalls.append(recall if recall.item() < 1 else 1 + zero)
        values.append(1 - mean(recalls, zero))
    return values

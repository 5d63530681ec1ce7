"""Spectral clustering loss on raw embeddings."""

import torch
from torch import Tensor

from ..samples import Samples


def spectral_clust(samples: Samples) -> Tensor:
    """One value (Law 2017): rank(F) + C - 2 tr(F F^+ Y Y^+); rank has no gradient.

    Y Y^+ has the entry 1/|c| for two samples of the same class c, so the trace is
    sum_c 1/|c| sum_{i, j in c} (F F^+)_ij. N <= rank(F) is a ValueError.
    """
    F = samples.queries
    rank = int(torch.linalg.matrix_rank(F.detach()))
    if len(F) <= rank:
        raise ValueError(f"spectral_clust needs more samples than rank(F): {len(F)} <= {rank}")
    inverse = torch.linalg.pinv(F)
    trace = samples.zero()
    classes = sorted(set(samples.labels))
    for c in classes:
        members = [i for i in samples.rows if samples.labels[i] == c]
        for i in members:
            for j in members:
                trace = trace + torch.dot(samples.query_rows[i], inverse[:, j]) / len(members)
    return rank + len(classes) - 2 * trace

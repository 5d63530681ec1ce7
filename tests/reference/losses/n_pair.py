"""N-pair loss on raw embeddings."""

import torch
from torch import Tensor

from ..samples import Samples
from ..scalars import log_one_plus_sum_exp


def n_pair(samples: Samples, *, form: str = "all", l2: float = 0.02) -> list[Tensor]:
    """Per-anchor values.

    "all" [DD 2.22]: log(1 + sum_{k in N_i, j in P_i} exp(f_i.f_k - f_i.f_j)) + l2 |f_i|^2, one value per row;
    "mc" [RLL 2, NRA 4 with f_j+]: a batch of C classes x 2, the first of each class is the anchor i, the
    second its i+: log(1 + sum_{j != i} exp(f_i.f_j+ - f_i.f_i+)) + l2 |f_i|^2, one value per class in order
    of appearance.
    """
    zero = samples.zero()
    values = []
    if form == "all":
        for i in samples.rows:
            positive = [samples.dot(i, j) for j in samples.positive[i]]
            negative = [samples.dot(i, k) for k in samples.negative[i]]
            exponents = [s_k - s_j for s_k in negative for s_j in positive]
            norm = torch.dot(samples.query_rows[i], samples.query_rows[i])
            values.append(log_one_plus_sum_exp(exponents, zero) + l2 * norm)
        return values
    if form != "mc":
        raise ValueError(f"unknown form {form!r}")
    if samples.gallery is not samples.queries:
        raise ValueError("form='mc' has no separate gallery")
    members: dict[int, list[int]] = {}
    for i in samples.rows:
        members.setdefault(samples.labels[i], []).append(i)
    if any(len(rows) != 2 for rows in members.values()):
        raise ValueError("form='mc' needs exactly two samples of every class")
    for label, (anchor, partner) in members.items():
        own = samples.dot(anchor, partner)
        exponents = [samples.dot(anchor, rows[1]) - own for other, rows in members.items() if other != label]
        norm = torch.dot(samples.query_rows[anchor], samples.query_rows[anchor])
        values.append(log_one_plus_sum_exp(exponents, zero) + l2 * norm)
    return values

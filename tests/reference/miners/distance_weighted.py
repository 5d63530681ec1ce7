"""Distance weighted sampling, as probabilities."""

import math

from ..samples import Samples


def distance_weighted(samples: Samples, cutoff: float = 0.5, limit: float = 1.4) -> list[dict[int, float]]:
    """Probability of each negative column of a row, for the one draw per (a, p) (Wu 2017).

    log-weight = (2 - n) log d - (n - 3)/2 log(1 - d^2/4), n = embedding size, d = max(d_ij, cutoff); a
    negative with d_ij > limit is no candidate. A row without a candidate gives an empty dict.
    """
    n = samples.queries.shape[1]
    result: list[dict[int, float]] = []
    for i in samples.rows:
        logs: list[tuple[int, float]] = []
        for j in samples.negative[i]:
            d = samples.distance(i, j).item()
            if d <= limit:
                d = max(d, cutoff)
                logs.append((j, (2 - n) * math.log(d) - (n - 3) / 2 * math.log(1 - d * d / 4)))
        probabilities: dict[int, float] = {}
        if logs:
            top = max(value for _, value in logs)
            divisor = sum(math.exp(value - top) for _, value in logs)
            for j, value in logs:
                probabilities[j] = probabilities.get(j, 0.0) + math.exp(value - top) / divisor
        result.append(probabilities)
    return result

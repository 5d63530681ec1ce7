"""Random negatives, as probabilities."""

from ..samples import Samples


def random(samples: Samples) -> list[dict[int, float]]:
    """Probability of each negative column of a row, for the one draw per (a, p): uniform over N_i."""
    result: list[dict[int, float]] = []
    for i in samples.rows:
        probabilities: dict[int, float] = {}
        for j in samples.negative[i]:
            probabilities[j] = probabilities.get(j, 0.0) + 1 / len(samples.negative[i])
        result.append(probabilities)
    return result

"""The few scalar and vector operations that the derivations share."""

from collections.abc import Iterable

import torch
from torch import Tensor

COINCIDENT = 1e-12  # float64: at or below this squared distance the gradient is 0


def total(terms: Iterable[Tensor], zero: Tensor) -> Tensor:
    """Sum of the terms, `zero` when there is none."""
    result = zero
    for term in terms:
        result = result + term
    return result


def mean(terms: list[Tensor], zero: Tensor) -> Tensor:
    """Mean of the terms, `zero` when there is none."""
    return total(terms, zero) / len(terms) if terms else zero


def hinge(value: Tensor) -> Tensor:
    """[a]+ = max(0, a), with gradient 0 at a = 0."""
    return torch.relu(value)


def log_sum_exp(terms: list[Tensor]) -> Tensor:
    """log sum_k e^{a_k} of a non-empty list, one logaddexp at a time."""
    result = terms[0]
    for term in terms[1:]:
        result = torch.logaddexp(result, term)
    return result


def log_one_plus_sum_exp(terms: list[Tensor], zero: Tensor) -> Tensor:
    """log(1 + sum_k e^{a_k}); 0 for an empty list."""
    result = zero
    for term in terms:
        result = torch.logaddexp(result, term)
    return result


def unit_vector(vector: Tensor) -> Tensor:
    """x = f / |f|."""
    return vector / torch.sqrt(torch.dot(vector, vector))


def squared_distance(a: Tensor, b: Tensor) -> Tensor:
    """|a - b|^2 from the difference; gradient 0 where it is at most 1e-12."""
    difference = a - b
    square = torch.dot(difference, difference)
    return square if square.item() > COINCIDENT else square.detach()


def distance(a: Tensor, b: Tensor) -> Tensor:
    """|a - b|; gradient 0 where the vectors coincide."""
    return torch.sqrt(squared_distance(a, b))


def target_cross_entropy(target: Tensor, others: list[Tensor], zero: Tensor) -> Tensor:
    """-log( e^t / (e^t + sum_j e^{z_j}) ) = log(1 + sum_j e^{z_j - t})."""
    return log_one_plus_sum_exp([other - target for other in others], zero)

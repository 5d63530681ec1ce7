"""The histogram of pairs that a run keeps: as fine as its range asks for, and readable beside those of other runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nearkin.train.answers import BINS, similarities
from nearkin.vectors import unit


def vectors(spread: float, rows: int = 120) -> tuple[torch.Tensor, np.ndarray]:
    """Rows about one direction; those of a class are closer to each other."""
    torch.manual_seed(0)
    labels = np.arange(rows) % 6
    centres = torch.randn(6, 16)
    made = torch.ones(rows, 16) + spread * (centres[torch.from_numpy(labels)] + 0.5 * torch.randn(rows, 16))
    return unit(made), labels


@pytest.mark.parametrize("spread", [3.0, 0.3, 0.03, 0.01])
def test_steps_follow_the_range_of_the_pairs(spread: float) -> None:
    made, labels = vectors(spread)
    found = similarities(made, labels)
    cosines = (made.double() @ made.double().T)[torch.triu(torch.ones(len(made), len(made)), 1).bool()].numpy()
    same = (labels[:, None] == labels)[np.triu_indices(len(labels), 1)]
    edges = np.array(found["edges"])
    for key, kind in (("positive", same), ("negative", ~same)):
        assert sum(found[key]) == kind.sum()
        expected, _ = np.histogram(cosines[kind], edges)
        assert np.abs(np.array(found[key]) - expected).sum() <= 0.02 * kind.sum()  # values on an edge
    assert 25 <= np.count_nonzero(np.add(found["positive"], found["negative"])) <= 200
    assert np.allclose(np.diff(edges), edges[1] - edges[0])
    shared = np.minimum(*(np.array(found[key]) / sum(found[key]) for key in ("positive", "negative"))).sum()
    assert shared < 0.6  # classes are as far apart as before, however close all of them lie


def test_a_wide_range_has_the_steps_that_older_results_have() -> None:
    assert similarities(*vectors(3.0))["edges"] == np.linspace(-1, 1, BINS + 1).round(4).tolist()


def test_equal_vectors_and_a_single_one_have_a_histogram() -> None:
    alike = similarities(torch.ones(5, 3), np.array([0, 0, 1, 1, 1]))
    assert (sum(alike["positive"]), sum(alike["negative"])) == (4, 6) and alike["edges"][-1] == 1
    alone = similarities(torch.ones(1, 3), np.array([0]))
    assert sum(alone["positive"]) + sum(alone["negative"]) == 0 and len(alone["edges"]) == BINS + 1


def test_one_pair_far_off_does_not_make_the_file_large() -> None:
    made, labels = vectors(0.01)
    made[0] = -made[0]
    found = similarities(made, labels)
    assert len(found["edges"]) <= 1001 and found["edges"][0] < -0.99

"""Numbers made of keys look random, whichever key changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from nearkin.noise import of_pairs, uniform


@pytest.mark.parametrize("function", [of_pairs, uniform])
def test_numbers_of_pairs_look_random(function: object) -> None:
    seeds = torch.arange(20)[:, None, None] * 1_000_003  # as batches are counted
    found = function(seeds, torch.arange(60)[:, None], torch.arange(60)).numpy()  # type: ignore[operator]
    assert found.min() >= 0 and found.max() < 1
    assert stats.kstest(found.ravel(), "uniform").pvalue > 0.01
    # Neighbours in any direction, and the second next ones, know nothing of each other.
    for axis in range(3):
        for step in (1, 2):
            length = found.shape[axis]
            one, other = (np.take(found, range(*part), axis).ravel() for part in ((length - step,), (step, length)))
            table, _, _ = np.histogram2d(one, other, bins=8, range=[[0, 1], [0, 1]])
            assert stats.chisquare(table.ravel()).pvalue > 1e-3, (axis, step)

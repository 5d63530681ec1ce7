"""Centres, radii and what they say of a figure, against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nearkin.plane.shape import Shape, rank_correlation, shape


def test_centres_and_radii_are_medians() -> None:
    points = torch.randn(301, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(301) % 3
    found = shape(points, labels, 3)
    for label in range(3):
        own = points[labels == label].numpy().astype(np.float64)
        center = np.median(own, 0)
        np.testing.assert_allclose(found.centers[label], center)
        np.testing.assert_allclose(found.radius[label], np.median(np.hypot(*(own - center).T)))


def test_a_few_strays_change_next_to_nothing() -> None:
    points, labels = (
        torch.randn(200, 2, generator=torch.Generator().manual_seed(1)),
        torch.zeros(200, dtype=torch.int64),
    )
    calm = shape(points, labels, 1)
    points[:4] = 1e6
    wild = shape(points, labels, 1)
    assert float((wild.centers - calm.centers).norm()) < 0.1
    assert float(wild.radius) == pytest.approx(float(calm.radius), rel=0.1)


def test_tightness_and_ratio_by_hand() -> None:
    found = Shape(torch.tensor([[0.0, 0.0], [4.0, 0.0], [4.0, 3.0]]), torch.tensor([1.0, 0.6, 1.5]))
    assert found.tightness == pytest.approx((1 / 4 + 0.6 / 3 + 1.5 / 3) / 3)
    assert found.ratio == pytest.approx(2.5)


def test_an_absent_class_is_named() -> None:
    with pytest.raises(ValueError, match=r"^labels must hold every class from 0 to 2, got none of class 1; draw more"):
        shape(torch.zeros(2, 2), torch.tensor([0, 2]), 3)


def test_rank_correlation_is_spearmans() -> None:
    stats = pytest.importorskip("scipy.stats")
    one, other = torch.randn(2, 10, generator=torch.Generator().manual_seed(2))
    assert rank_correlation(one, other) == pytest.approx(stats.spearmanr(one.numpy(), other.numpy()).statistic)
    assert rank_correlation(one, -one) == pytest.approx(-1)

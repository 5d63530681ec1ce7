"""Mean average precision in the plane: against plain loops, scikit-learn, and the package's own measure by cosine."""

from __future__ import annotations

import math
import random

import pytest
import torch

from nearkin import evaluation
from nearkin.plane import precision
from nearkin.plane.precision import rank


def drawn(count: int, classes: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    centers = 3 * torch.randn(classes, 2, generator=generator)
    return centers[labels] + torch.randn(count, 2, generator=generator), labels


def plain(points: list[list[float]], labels: list[int]) -> tuple[list[float], list[float]]:
    """Average precision and recall@1 of every query, one number at a time."""
    values, firsts = [], []
    for query, (x, y) in enumerate(points):
        others = [k for k in range(len(points)) if k != query]
        others.sort(key=lambda k: ((points[k][0] - x) ** 2 + (points[k][1] - y) ** 2, k))
        hits, total = 0, 0.0
        for place, k in enumerate(others, 1):
            if labels[k] == labels[query]:
                hits += 1
                total += hits / place
        values.append(total / hits if hits else math.nan)
        firsts.append(float(labels[others[0]] == labels[query]) if hits else math.nan)
    return values, firsts


@pytest.mark.parametrize(("count", "classes"), [(2, 1), (30, 3), (90, 10)])
def test_against_a_plain_loop(count: int, classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "ROWS", 7)  # so that blocks begin and end inside
    points, labels = drawn(count, classes, count)
    found = rank(points, labels)
    values, firsts = plain(points.double().tolist(), labels.tolist())
    torch.testing.assert_close(found.average_precision, torch.tensor(values, dtype=torch.float64), equal_nan=True)
    torch.testing.assert_close(found.first, torch.tensor(firsts, dtype=torch.float64), equal_nan=True)
    known = [value for value in values if not math.isnan(value)]
    assert found.mean == pytest.approx(sum(known) / len(known))


def test_against_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    points, labels = drawn(200, 5, 0)
    found = rank(points, labels)
    for query in random.Random(0).sample(range(200), 20):
        others = torch.arange(200) != query
        distance = (points.double() - points[query].double()).norm(dim=1)[others]
        expected = metrics.average_precision_score((labels == labels[query])[others].numpy(), -distance.numpy())
        assert float(found.average_precision[query]) == pytest.approx(expected, abs=1e-12)


def test_by_angle_is_the_measure_by_cosine() -> None:
    points, labels = drawn(300, 4, 1)
    expected = evaluation.evaluate(points.double(), labels, metrics=("map", "recall"), ks=(1,))
    found = rank(points, labels, by_angle=True)
    assert found.mean == pytest.approx(expected["map"], abs=1e-9)
    assert found.recall == pytest.approx(expected["recall@1"], abs=1e-12)
    assert abs(found.mean - rank(points, labels).mean) > 0.01


def test_points_at_one_place_keep_the_order_of_the_rows() -> None:
    points = torch.tensor([[0.1, 0.7]] * 5 + [[3.0, 3.0]])
    labels = torch.tensor([0, 1, 1, 0, 0, 1])
    values, _ = plain(points.double().tolist(), labels.tolist())
    assert rank(points, labels).average_precision.tolist() == pytest.approx(values)


def test_size_and_place_of_the_whole_change_nothing() -> None:
    points, labels = drawn(120, 3, 2)
    assert rank(1000 * points.double() + 77, labels).mean == pytest.approx(rank(points, labels).mean, abs=1e-9)


def test_a_class_of_one_is_left_out() -> None:
    found = rank(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.4, 0.0]]), torch.tensor([0, 0, 1]))
    assert found.average_precision[2].isnan() and found.first[2].isnan()
    assert found.mean == 0.5 and found.recall == 0.0


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^points must be finite, got NaN or infinity; train with a lower lr\.$"):
        rank(torch.tensor([[0.0, math.nan], [1.0, 1.0]]), torch.tensor([0, 0]))
    with pytest.raises(ValueError, match=r"^points must hold at least 2 rows, got 1; "):
        rank(torch.zeros(1, 2), torch.tensor([0]))
    with pytest.raises(ValueError, match=r"^labels must have one entry per row of points \(3\), got 2; "):
        rank(torch.zeros(3, 2), torch.tensor([0, 0]))

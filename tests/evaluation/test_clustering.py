"""k-means against scikit-learn and against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans  # type: ignore[import-untyped]
from sklearn.datasets import make_blobs  # type: ignore[import-untyped]

from nearkin.evaluation import kmeans, nmi
from nearkin.evaluation.clustering import _assign_again, _nearest, _reseed
from nearkin.evaluation.seeding import draw_centers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "spread"), [(5, 0.5), (12, 2.0), (40, 4.0)])
def test_inertia_is_that_of_scikit_learn(k: int, spread: float, dtype: type) -> None:
    points, _ = make_blobs(900, 8, centers=k, cluster_std=spread, random_state=k)
    points = points.astype(dtype)
    found = kmeans(points, k, starts=8)
    expected = KMeans(k, n_init=8, random_state=0).fit(points).inertia_
    assert found.inertia <= 1.05 * expected
    # Inertia, centers and assignment belong together.
    distances = ((points[:, None] - found.centers.numpy()) ** 2).sum(2)
    assert found.inertia == pytest.approx(distances.min(1).sum(), rel=1e-4)
    assert (distances.argmin(1) == found.assignment.numpy()).mean() > 0.999


def test_one_start_is_within_five_percent_of_scikit_learn() -> None:
    ratios = []
    for seed in range(5):
        points, _ = make_blobs(600, 6, centers=15, cluster_std=2.5, random_state=seed)
        expected = KMeans(15, n_init=1, random_state=seed).fit(points).inertia_
        ratios.append(kmeans(points, 15, seed=seed).inertia / expected)
    assert math.exp(np.mean(np.log(ratios))) < 1.05


def test_separated_groups_are_found() -> None:
    points, labels = make_blobs(300, 4, centers=10, cluster_std=0.05, random_state=1)
    assert nmi(labels, kmeans(points, 10).assignment) == pytest.approx(1)


def test_same_seed_same_result_other_memory_too() -> None:
    points = torch.randn(300, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    one, two = kmeans(points, 9, seed=4), kmeans(points, 9, seed=4, memory=1000)
    assert torch.equal(kmeans(points, 90).assignment, kmeans(points, 90, memory=1000).assignment)
    assert torch.equal(one.assignment, two.assignment)
    torch.testing.assert_close(one.centers, two.centers)
    assert torch.equal(kmeans(points, 9, seed=4).centers, one.centers)
    assert not torch.equal(kmeans(points, 9, seed=5).centers, one.centers)


def test_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    kmeans(torch.eye(5), 2)
    assert torch.equal(torch.get_rng_state(), before)


def test_far_origin_does_not_matter() -> None:
    points, labels = make_blobs(200, 4, centers=5, cluster_std=0.1, random_state=2)
    shifted = (points + 1000).astype(np.float32)
    found = kmeans(shifted, 5)
    assert nmi(labels, found.assignment) == pytest.approx(1)
    assert found.inertia == pytest.approx(kmeans(points, 5).inertia, rel=1e-2)


def test_more_starts_are_not_worse() -> None:
    points = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    assert kmeans(points, 20, starts=4).inertia <= kmeans(points, 20).inertia


def test_as_many_clusters_as_vectors_and_one_cluster() -> None:
    points = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    every = kmeans(points, 12)
    assert sorted(every.assignment.tolist()) == list(range(12)) and every.inertia == pytest.approx(0, abs=1e-5)
    single = kmeans(points, 1)
    assert set(single.assignment.tolist()) == {0}
    torch.testing.assert_close(single.centers[0], points.mean(0))


def test_fewer_distinct_vectors_than_clusters() -> None:
    found = kmeans(torch.eye(2)[[0, 0, 1, 1, 1]], 4)
    assert found.inertia == pytest.approx(0, abs=1e-6) and found.centers.isfinite().all()
    assert nmi([0, 0, 1, 1, 1], found.assignment) > 0.7


def test_empty_clusters_take_the_farthest_vectors() -> None:
    assignment = torch.tensor([0, 0, 0, 2, 2, 3])
    distance = torch.tensor([1.0, 9.0, 2.0, 4.0, 4.0, 50.0])
    # Row 5 is alone in its cluster and stays; row 1 is farthest, then 3 before its equal 4, then 2.
    assert _reseed(assignment, distance, 6).tolist() == [0, 1, 5, 4, 2, 3]
    assert assignment.tolist() == [0, 0, 0, 2, 2, 3]


def seeded_in_turn(points: np.ndarray, k: int, random: np.random.Generator) -> float:
    """The sum of squared distances after greedy k-means++, one center after the other, by the definition."""
    trials = 2 + int(math.log(k))
    nearest = ((points - points[random.integers(len(points))]) ** 2).sum(1)
    for _ in range(k - 1):
        candidates = random.choice(len(points), trials, p=nearest / nearest.sum())
        left = [np.minimum(nearest, ((points - points[c]) ** 2).sum(1)) for c in candidates]
        nearest = min(left, key=lambda distances: distances.sum())
    return float(nearest.sum())


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_centers_drawn_several_at_a_time_are_those_drawn_in_turn(spread: float) -> None:
    points, _ = make_blobs(400, 3, centers=30, cluster_std=spread, random_state=0)
    together, in_turn = [], []
    for seed in range(40):
        centers = draw_centers(torch.from_numpy(points), 60, torch.Generator().manual_seed(seed)).numpy()
        together.append(((points[:, None] - centers) ** 2).sum(2).min(1).sum())
        in_turn.append(seeded_in_turn(points, 60, np.random.default_rng(seed)))
    error = math.hypot(np.std(together), np.std(in_turn)) / math.sqrt(40)
    assert abs(np.mean(together) - np.mean(in_turn)) < 3 * error
    # An even draw is far off, so that the bound means something.
    even = [
        ((points[:, None] - points[np.random.default_rng(seed).choice(400, 60, replace=False)]) ** 2)
        .sum(2)
        .min(1)
        .sum()
        for seed in range(10)
    ]
    assert np.mean(even) - np.mean(in_turn) > 10 * error


def test_drawn_centers_are_points_far_apart() -> None:
    points = torch.eye(20).repeat(5, 1)
    centers = draw_centers(points, 20, torch.Generator().manual_seed(0))
    assert sorted(centers.argmax(1).tolist()) == list(range(20))
    # No point is left to draw: the rest are copies.
    assert draw_centers(torch.eye(2)[[0, 1, 1]], 3, torch.Generator().manual_seed(0)).sum() == 3


def lloyd(points: np.ndarray, centers: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Lloyd's algorithm by its definition."""
    for _ in range(rounds):
        group = ((points[:, None] - centers) ** 2).sum(2).argmin(1)
        centers = np.stack(
            [points[group == c].mean(0) if (group == c).any() else centers[c] for c in range(len(centers))]
        )
    return ((points[:, None] - centers) ** 2).sum(2).argmin(1), centers


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_rounds_that_measure_only_what_moved_equal_plain_ones(rounds: int) -> None:
    points = torch.randn(300, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    centered = points - points.mean(0)
    start = draw_centers(centered, 25, torch.Generator().manual_seed(6)).numpy()
    group, centers = lloyd(centered.numpy(), start, rounds)
    assert len(np.unique(group)) == 25
    for memory in (2**28, 2000):
        found = kmeans(points, 25, seed=6, iterations=rounds, memory=memory)
        assert found.assignment.tolist() == group.tolist()
        np.testing.assert_allclose(found.centers - points.mean(0), centers, atol=1e-12)


def test_assigning_again_equals_assigning_anew() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randint(-3, 4, (200, 2), generator=generator).double()  # whole numbers: many ties
    every = torch.arange(200)
    for share in (0.0, 0.1, 0.5, 1.0):
        centers = torch.randint(-3, 4, (30, 2), generator=generator).double()
        assignment, closeness = _nearest(points, every, centers, 4000)
        moved = torch.rand(30, generator=generator) < share
        centers[moved] = torch.randint(-3, 4, (int(moved.sum()), 2), generator=generator).double()
        again = _assign_again(points, centers, moved, moved[assignment], assignment, closeness, 900)
        anew = _nearest(points, every, centers, 2**20)
        assert torch.equal(again[0], anew[0]) and torch.equal(again[1], anew[1])
        distances = torch.cdist(points, centers).square().round()
        assert torch.equal(anew[0], distances.min(1).indices)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k": 0}, "kmeans: k must be a whole number at least 1, got 0; change k."),
        ({"k": 4}, "k must be at most the number of vectors (3), got 4; ask for fewer clusters."),
        (
            {"iterations": 0},
            "kmeans: iterations must be a whole number at least 1, got 0; change iterations.",
        ),
        ({"starts": 0}, "kmeans: starts must be a whole number at least 1, got 0; change starts."),
        (
            {"seed": 2**63},
            "kmeans: seed must be a whole number at least 0 and at most 9223372036854775807, got 9223372036854775808; "
            "change seed.",
        ),
        (
            {"seed": -1},
            "kmeans: seed must be a whole number at least 0 and at most 9223372036854775807, got -1; change seed.",
        ),
        (
            {"vectors": torch.tensor([[math.inf]])},
            "vectors must be finite, got NaN or Inf in row 0; check the model that made them or drop such rows.",
        ),
    ],
)
def test_kmeans_errors(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        kmeans(**({"vectors": torch.eye(3), "k": 1} | arguments))  # type: ignore[arg-type]
    assert str(caught.value) == sentence

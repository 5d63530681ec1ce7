"""k-means and the agreement of groupings against scikit-learn and loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans  # type: ignore[import-untyped]
from sklearn.datasets import make_blobs  # type: ignore[import-untyped]
from sklearn.metrics import normalized_mutual_info_score  # type: ignore[import-untyped]

from nearkin.evaluation import kmeans, nmi, pair_f1
from nearkin.evaluation.clustering import _reseed
from tests.evaluation import plain

groupings = st.integers(1, 30).flatmap(lambda n: st.tuples(plain.some_labels(n), plain.some_labels(n)))


@given(groupings)
def test_nmi_equals_scikit_learn(pair: tuple[list[int], list[int]]) -> None:
    assert nmi(*pair) == pytest.approx(normalized_mutual_info_score(*pair), abs=1e-9)


@given(groupings)
def test_pair_f1_equals_the_double_loop(pair: tuple[list[int], list[int]]) -> None:
    assert pair_f1(*pair) == pytest.approx(plain.pair_f1(*pair), abs=1e-12)


@given(groupings)
def test_agreement_is_symmetric_and_blind_to_group_numbers(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    renamed = [7 - 3 * value for value in a]
    for measure in (nmi, pair_f1):
        assert measure(a, b) == pytest.approx(measure(b, a)) == pytest.approx(measure(renamed, b))
        assert 0 <= measure(a, b) <= 1


def test_agreement_edges() -> None:
    assert nmi([1, 1, 1], [2, 2, 2]) == 1
    assert nmi([1, 1, 1], [1, 2, 3]) == 0
    assert nmi([1, 2, 3], [3, 2, 1]) == pytest.approx(1)
    assert pair_f1([1, 2, 3], [3, 2, 1]) == 0
    assert pair_f1([1, 1, 2], [5, 5, 6]) == 1


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
        ({"seed": -1}, "kmeans: seed must be a whole number at least 0, got -1; change seed."),
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


@pytest.mark.parametrize("measure", [nmi, pair_f1])
def test_agreement_errors(measure: object) -> None:
    for a, b, sentence in [
        ([], [], "a must hold at least one item, got none; pass one group number per item."),
        (
            [1, 2],
            [1],
            "b must have one entry per row of a (2), got 1; pass the labels of exactly these rows.",
        ),
    ]:
        with pytest.raises(ValueError) as caught:
            measure(a, b)  # type: ignore[operator]
        assert str(caught.value) == sentence

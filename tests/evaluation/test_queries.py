"""Measures of single queries: against loops and scikit-learn, in shares, per class, with what is found first."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score  # type: ignore[import-untyped]
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]

from nearkin.evaluation import PerQuery, join, per_query
from tests.evaluation import plain


def blobs(rows: int = 240, classes: int = 60, noise: float = 1.2, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (rows,), generator=generator)
    centers = torch.randn(classes, 6, generator=generator)
    return centers[labels] + noise * torch.randn(rows, 6, generator=generator), labels


def same(one: PerQuery, other: PerQuery) -> bool:
    """Equal bit for bit."""
    pairs = [(one.rows, other.rows), (one.labels, other.labels), (one.relevant, other.relevant)]
    pairs += [(one.nearest, other.nearest), (one.similarity, other.similarity)]
    pairs += [(one.values[name], other.values[name]) for name in one.values]
    return list(one.values) == list(other.values) and all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_values_and_nearest_equal_the_loops(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 12))
    points, labels = data.draw(plain.corners(n)), data.draw(plain.some_labels(n))
    query = data.draw(
        st.none() | st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda mask: 0 < sum(mask) < n)
    )
    asks = [i for i in range(n) if query is None or query[i]]
    gallery = [i for i in range(n) if query is None or not query[i]]
    found = per_query(points, labels, ks=(1, 3), query=query, nearest=2, memory=data.draw(st.sampled_from([1, 10**6])))
    ranked = plain.ranking(points[asks].tolist(), points[gallery].tolist(), asks if query is None else None)[1]
    assert found.rows.tolist() == asks and found.labels.tolist() == [labels[i] for i in asks]
    assert found.nearest.tolist() == [([gallery[j] for j in row] + [-1, -1])[:2] for row in ranked]
    gallery_labels = [labels[j] for j in gallery]
    for place, (i, row) in enumerate(zip(asks, ranked, strict=True)):
        expected, left_out = (
            plain.measures([row], [labels[i]], gallery_labels, [1, 3])
            if _any(row, labels[i], gallery_labels)
            else ({}, 1)
        )
        for name, value in found.values.items():
            if left_out:
                assert math.isnan(value[place]) and int(found.relevant[place]) == 0
            else:
                assert float(value[place]) == pytest.approx(expected[name], abs=1e-12)


def _any(row: list[int], label: int, gallery_labels: list[int]) -> bool:
    return any(gallery_labels[j] == label for j in row)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_scikit_learn(dtype: torch.dtype) -> None:
    points, labels = blobs(noise=0.8)
    found = per_query(points.to(dtype), labels, ks=(1, 5), nearest=5)
    array = points.double().numpy()
    search = NearestNeighbors(n_neighbors=6, algorithm="brute", metric="cosine").fit(array)
    distance, index = search.kneighbors(array)
    assert np.array_equal(index[:, 0], np.arange(240))
    assert np.array_equal(found.nearest.numpy(), index[:, 1:])
    np.testing.assert_allclose(found.similarity, 1 - distance[:, 1:], atol=1e-6)
    hit = labels.numpy()[index[:, 1:]] == labels.numpy()[:, None]
    answered = found.relevant.numpy() > 0
    assert answered.sum() > 100 and hit[answered, 0].mean() == found.means()["recall@1"]
    assert hit[answered].any(1).mean() == found.means()["recall@5"]
    cosine = array @ array.T / np.outer(np.linalg.norm(array, axis=1), np.linalg.norm(array, axis=1))
    for i in np.nonzero(answered)[0]:
        others = np.arange(240) != i
        relevant = labels.numpy()[others] == labels.numpy()[i]
        expected = average_precision_score(relevant, cosine[i, others])
        assert float(found.values["map"][i]) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [90, 12, 3])
@pytest.mark.parametrize("query", [False, True])
def test_shares_join_to_the_whole_bit_for_bit(classes: int, query: bool) -> None:
    # 3 classes of 80 are ranked by sorting, 90 classes by counting, 12 classes in both ways.
    points, labels = blobs(classes=classes)
    mask = torch.arange(240) % 3 == 1 if query else None
    whole = per_query(points, labels, ks=(1, 10), query=mask, nearest=3)
    for parts in (2, 7, 300):
        shares = [
            per_query(points, labels, ks=(1, 10), query=mask, nearest=3, rows=slice(part, None, parts), memory=5000)
            for part in range(parts)
        ]
        assert same(join(shares), whole)
        queries = sum(share.sums()["queries"] for share in shares)
        assert queries == whole.means()["queries"]
        for name in whole.values:
            total = sum(share.sums()[name] for share in shares)
            assert total / queries == pytest.approx(whole.means()[name], abs=1e-12)


def test_shares_by_number() -> None:
    points, labels = blobs()
    whole = per_query(points, labels)
    some = per_query(points, labels, rows=[9, 3, 200])
    assert some.rows.tolist() == [3, 9, 200]
    for name, value in some.values.items():
        assert torch.equal(value.nan_to_num(), whole.values[name][[3, 9, 200]].nan_to_num())
    mask = torch.arange(240) >= 200
    assert per_query(points, labels, query=mask, rows=slice(-3, None)).rows.tolist() == [237, 238, 239]
    assert len(per_query(points, labels, rows=slice(0, 0), nearest=2).nearest) == 0


@pytest.mark.parametrize("memory", [1, 3000, 40_000, 2**28])
@pytest.mark.parametrize("classes", [90, 12, 3])
def test_memory_changes_nothing(classes: int, memory: int) -> None:
    points, labels = blobs(rows=120, classes=classes)
    assert same(per_query(points, labels, nearest=4, memory=memory), per_query(points, labels, nearest=4, memory=2**24))


def test_types_and_precision_change_nothing() -> None:
    points, labels = blobs()
    expected = per_query(points, labels, nearest=4)
    double = per_query(points.double(), labels, nearest=4)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rough = per_query(points, labels, nearest=4)
    finally:
        torch.set_float32_matmul_precision(before)
    assert same(rough, expected) and torch.equal(double.nearest, expected.nearest)
    for name, value in expected.values.items():
        assert torch.equal(double.values[name].nan_to_num(), value.nan_to_num())


def test_few_and_many_relevant_items_together() -> None:
    # One class of 60, the others of 2: those are ranked by sorting, these by counting.
    generator = torch.Generator().manual_seed(0)
    labels = torch.cat([torch.zeros(60, dtype=torch.int64), 1 + torch.arange(60) // 2])
    labels = labels[torch.randperm(120, generator=generator)]
    points = torch.randn(120, 3, generator=generator)
    found = per_query(points, labels, ks=(1, 4))
    ranked = plain.ranking(points.tolist(), points.tolist(), list(range(120)))[1]
    for i, row in enumerate(ranked):
        expected = plain.measures([row], [int(labels[i])], labels.tolist(), [1, 4])[0]
        assert {name: float(value[i]) for name, value in found.values.items()} == pytest.approx(expected, abs=1e-12)


def test_means_per_class() -> None:
    points, labels = blobs()
    found = per_query(points, labels, ks=(1,))
    classes = torch.arange(62)
    each = found.per_class(classes)
    assert sum(count or 0 for count in each["queries"]) == found.means()["queries"]
    for name, values in each.items():
        for number, value in enumerate(values):
            mine = (labels == number) & (found.relevant > 0)
            if name == "queries":
                assert value == int(mine.sum())
            elif not mine.any():
                assert value is None
            else:
                assert value == pytest.approx(float(found.values[name][mine].mean()), abs=1e-12)
    assert each["recall@1"][61] is None


def test_chosen_measures_come_in_their_order() -> None:
    points, labels = blobs()
    assert list(per_query(points, labels, metrics=("map", "recall"), ks=(5, 1)).values) == [
        "recall@5",
        "recall@1",
        "map",
    ]
    assert per_query(points, labels, metrics=(), nearest=1).values == {}


POINTS, LABELS = torch.eye(4), [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: per_query(POINTS, LABELS, rows=[0, 4]),
            "rows must hold numbers of queries from 0 to 3, got values from 0 to 4; "
            "number the queries, not the rows of the gallery.",
        ),
        (
            lambda: per_query(POINTS, LABELS, rows=[1, 1]),
            "rows must name each query once, got 2 numbers with repeats; drop the repeats.",
        ),
        (
            lambda: per_query(POINTS, LABELS, metrics="nmi"),
            "metric 'nmi' is not known; choose one of map, map@r, r_precision, recall.",
        ),
        (
            lambda: per_query(POINTS, LABELS, nearest=-1),
            "per_query: nearest must be a whole number at least 0, got -1; change nearest.",
        ),
        (
            lambda: per_query(POINTS, LABELS, ks=[0]),
            "per_query: ks must be a whole number at least 1, got 0; change ks.",
        ),
        (
            lambda: per_query(POINTS, LABELS, ks=[]),
            'ks must hold at least one number, got none; leave "recall" out of metrics instead.',
        ),
        (
            lambda: per_query(POINTS, LABELS, rows=slice(0, 0)).means(),
            "labels must give at least one query a relevant item, got none for 0 queries; "
            "check that queries and gallery use the same labels and that some class has two items.",
        ),
        (
            lambda: join([]),
            "shares must hold at least one result of per_query, got none; pass what the shares returned.",
        ),
        (
            lambda: join([per_query(POINTS, LABELS, rows=[0, 2]), per_query(POINTS, LABELS, rows=[1, 2])]),
            "shares must hold each query once, got row 2 twice; "
            "give each share its own queries, per_query(..., rows=slice(rank, None, processes)).",
        ),
    ],
)
def test_errors(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == sentence

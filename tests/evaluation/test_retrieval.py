"""Retrieval measures against loops and scikit-learn, queries without an answer, and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score  # type: ignore[import-untyped]

from nearkin.evaluation import map_at_r, mean_average_precision, neighbours, r_precision, recall_at_k
from nearkin.evaluation.retrieval import hits, relevant_count
from tests.evaluation import plain

KS = [1, 2, 3, 5]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_measures_of_any_ranking_equal_the_loops(data: st.DataObject) -> None:
    n, m = data.draw(st.integers(1, 6)), data.draw(st.integers(5, 14))
    labels, gallery_labels = data.draw(plain.some_labels(n)), data.draw(plain.some_labels(m))
    index = [data.draw(st.permutations(range(m))) for _ in range(n)]
    if not set(labels) & set(gallery_labels):
        return
    expected, left_out = plain.measures([list(row) for row in index], labels, gallery_labels, KS)
    recall = recall_at_k(index, labels, gallery_labels, KS)
    got = {f"recall@{k}": float(value) for k, value in zip(KS, recall, strict=True)}
    got["r_precision"] = float(r_precision(index, labels, gallery_labels))
    got["map@r"] = float(map_at_r(index, labels, gallery_labels))
    got["map"] = float(mean_average_precision(index, labels, gallery_labels))
    assert got == pytest.approx(expected, abs=1e-12)
    relevant = relevant_count(torch.tensor(labels), torch.tensor(gallery_labels))
    found = hits(torch.tensor(index), torch.tensor(labels), torch.tensor(gallery_labels), relevant)
    assert found.left_out == left_out


def test_average_precision_equals_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(6, (60,), generator=generator)
    own = torch.arange(60)
    similarity, index = neighbours(points, points, 60, self_index=own)
    values = mean_average_precision(index, labels, labels, self_index=own, reduction="none")
    for i in range(60):
        relevant = (labels[index[i, :-1]] == labels[i]).numpy()
        assert float(values[i]) == pytest.approx(average_precision_score(relevant, similarity[i, :-1].numpy()))


Measure = Callable[..., torch.Tensor]


def recall(index: list[list[int]], labels: list[int], gallery_labels: list[int], **settings: Any) -> torch.Tensor:
    return recall_at_k(index, labels, gallery_labels, (1,), **settings)[..., 0]


MEASURES = [recall, r_precision, map_at_r, mean_average_precision]


@pytest.mark.parametrize("measure", MEASURES)
def test_queries_without_a_relevant_item_are_left_out(measure: Measure) -> None:
    index, labels, gallery_labels = [[0, 1], [1, 0], [0, 1]], [4, 9, 5], [4, 5]
    values = measure(index, labels, gallery_labels, reduction="none")
    assert values.isnan().tolist() == [False, True, False]
    assert float(measure(index, labels, gallery_labels)) == pytest.approx(float(values[[0, 2]].mean()))


@pytest.mark.parametrize("measure", MEASURES)
def test_the_query_itself_is_not_relevant(measure: Measure) -> None:
    index, labels = [[1, 2], [0, 2], [0, 1]], [7, 7, 8]
    values = measure(index, labels, labels, self_index=[0, 1, 2], reduction="none")
    assert values[:2].tolist() == [1, 1] and math.isnan(values[2])


@pytest.mark.parametrize("measure", MEASURES)
def test_a_query_that_found_itself_is_no_hit(measure: Measure) -> None:
    """As a search of all vectors by each of them returns it."""
    with pytest.raises(ValueError) as caught:
        measure([[1, -1], [1, 0]], [7, 7], [7, 7], self_index=[-1, 1])
    assert str(caught.value) == (
        "index must not hold the query itself where self_index names it, got row 1 in the ranking of query 1; "
        "rank one place more and drop it, or rank with neighbours(..., self_index=...)."
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_relevant_at_all(measure: Measure) -> None:
    with pytest.raises(ValueError) as caught:
        measure([[0, 1]], [1], [2, 3])
    assert str(caught.value) == (
        "labels must give at least one query a relevant item, got none for 1 queries; "
        "check that queries and gallery use the same labels and that some class has two items."
    )


def test_places_without_an_item_are_no_hits() -> None:
    # Row 0 would be counted if -1 meant the last row of the gallery.
    assert recall_at_k([[0, -1]], [5], [4, 5], [1, 2]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: recall_at_k([[0]], [1], [1, 1], [0]),
            "recall_at_k: ks must be a whole number at least 1, got 0; change ks.",
        ),
        (
            lambda: recall_at_k([[0]], [1], [1, 1], [2]),
            "index must rank at least the largest k (2) places, got 1; rank with a larger k.",
        ),
        (
            lambda: r_precision([[0]], [1], [1, 1]),
            "index must rank at least the largest number of relevant items (2) places, got 1; rank with a larger k.",
        ),
        (
            lambda: mean_average_precision([[0]], [1], [1, 1]),
            "index must rank the whole gallery for average precision, got 1 places with 1 of 2 relevant "
            "items of query 0; rank with k = the gallery's size.",
        ),
        (
            lambda: r_precision(torch.tensor([0, 1]), [1], [1, 1]),
            "index must be integers of shape (queries, places), got torch.int64 of shape (2,); "
            "pass what neighbours returned.",
        ),
        (
            lambda: r_precision([[0, 2]], [1], [1, 1]),
            "index must hold gallery rows from 0 to 1 or -1 for none, got values from 0 to 2; "
            "number the rows of this gallery.",
        ),
        (
            lambda: r_precision([[0, 1]], [1, 1], [1, 1]),
            "labels must have one entry per row of index (1), got 2; pass the labels of exactly these rows.",
        ),
        (
            lambda: r_precision([[0, 1]], [1], [1, 1], reduction="sum"),
            "retrieval: reduction must be 'mean' or 'none', got 'sum'; choose one of these.",
        ),
    ],
)
def test_errors(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == sentence


def test_arrays_are_taken() -> None:
    index = np.array([[1, 0]], dtype=np.int32)
    assert float(map_at_r(index, np.array([3]), np.array([3, 4]))) == 0

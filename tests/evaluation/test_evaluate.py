"""The whole evaluation: against loops, all against all or with a gallery; choice of measures; errors."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nearkin.evaluation import METRICS, evaluate, kmeans, nmi, nmi_per_class, pair_f1, pair_f1_per_class, per_query
from tests.evaluation import plain

RETRIEVAL = ("recall", "r_precision", "map@r", "map")


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_all_against_all_equals_the_loops_with_many_ties(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 14))
    points, labels = data.draw(plain.corners(n)), data.draw(plain.some_labels(n))
    if len(set(labels)) == n:
        return
    memory = data.draw(st.sampled_from([1, 300, 2**28]))
    got = evaluate(points, labels, ks=(1, 2, 20), metrics=RETRIEVAL, memory=memory)
    rows = plain.ranking(points.tolist(), points.tolist(), list(range(n)))[1]
    expected, left_out = plain.measures(rows, labels, labels, [1, 2, 20])
    assert got == pytest.approx(expected | {"queries": n - left_out, "left_out": left_out}, abs=1e-12)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_queries_against_a_gallery_equal_the_loops(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 14))
    points, labels = data.draw(plain.corners(n)), data.draw(plain.some_labels(n))
    query = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    asks, gallery = [i for i in range(n) if query[i]], [i for i in range(n) if not query[i]]
    query_labels, gallery_labels = [labels[i] for i in asks], [labels[i] for i in gallery]
    if not set(query_labels) & set(gallery_labels):
        return
    got = evaluate(points, labels, ks=(1, 3), query=query, metrics=RETRIEVAL)
    rows = plain.ranking(points[asks].tolist(), points[gallery].tolist())[1]
    expected, left_out = plain.measures(rows, query_labels, gallery_labels, [1, 3])
    assert got == pytest.approx(expected | {"queries": len(asks) - left_out, "left_out": left_out}, abs=1e-12)


def blobs(rows: int = 120, classes: int = 8, noise: float = 0.7) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(rows) % classes
    centers = torch.randn(classes, 6, generator=generator)
    return centers[labels] + noise * torch.randn(rows, 6, generator=generator), labels


def test_keys_order_and_types() -> None:
    result = evaluate(*blobs())
    assert list(result) == [
        *("recall@1", "recall@2", "recall@4", "recall@8", "r_precision", "map@r", "map", "nmi", "f1"),
        *("queries", "left_out"),
    ]
    assert all(type(result[name]) is float for name in list(result)[:-2])
    assert (result["queries"], result["left_out"]) == (120, 0) and type(result["queries"]) is int
    assert all(0 < result[name] < 1 for name in ("recall@1", "r_precision", "map@r", "map", "nmi", "f1"))
    assert result["recall@1"] <= result["recall@2"] <= result["recall@8"]


def test_clustering_is_kmeans_on_unit_vectors_of_all_rows() -> None:
    points, labels = blobs()
    unit = points / points.norm(dim=1, keepdim=True)
    clusters = kmeans(unit, 8, seed=3).assignment
    expected = {"nmi": nmi(labels, clusters), "f1": pair_f1(labels, clusters)}
    for query in (None, torch.arange(120) < 40):
        result = evaluate(points, labels, metrics=("f1", "nmi"), seed=3, query=query)
        assert {name: result[name] for name in expected} == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", METRICS)
def test_each_measure_alone_equals_all_together(name: str) -> None:
    points, labels = blobs()
    whole, part = evaluate(points, labels), evaluate(points, labels, metrics=(name,))
    assert part == {key: whole[key] for key in part}
    assert len(part) == (6 if name == "recall" else 3)


def test_a_single_name_and_no_names() -> None:
    points, labels = blobs()
    assert evaluate(points, labels, metrics="map@r") == evaluate(points, labels, metrics=["map@r"])
    assert evaluate(points, labels, metrics=()) == {"queries": 120, "left_out": 0}


@pytest.mark.parametrize("query", [None, [row % 5 == 0 for row in range(120)]])
def test_per_class(query: list[bool] | None) -> None:
    points, labels = blobs()
    labels[-1] = 99  # alone in its class
    result = evaluate(points, labels, ks=(1, 2), query=query, per_class=True)
    each = result.pop("per_class")
    assert result == evaluate(points, labels, ks=(1, 2), query=query)
    names = ["recall@1", "recall@2", "r_precision", "map@r", "map"]
    assert list(each) == ["classes", *names, "queries", "nmi", "f1"]
    assert each["classes"] == np.unique(labels).tolist() and sum(each["queries"]) == result["queries"]
    assert each["queries"][-1] == 0 and all(each[name][-1] is None for name in names)
    for name in names:
        total = sum(value * count for value, count in zip(each[name], each["queries"], strict=True) if count)
        assert total / result["queries"] == pytest.approx(result[name], abs=1e-12)
    clusters = kmeans(points / points.norm(dim=1, keepdim=True), 9).assignment
    assert each["nmi"] == pytest.approx(nmi_per_class(labels, clusters), abs=1e-6)
    assert each["f1"] == pytest.approx(pair_f1_per_class(labels, clusters), abs=1e-6)
    assert json.loads(json.dumps(each, allow_nan=False)) == each


def test_per_class_of_chosen_measures() -> None:
    points, labels = blobs()
    each = evaluate(points, labels, metrics="map@r", per_class=True)["per_class"]
    assert list(each) == ["classes", "map@r", "queries"]


def test_perfect_embedding() -> None:
    labels = [0, 0, 1, 1, 2, 2, 2]
    result = evaluate(torch.eye(3)[labels], labels, ks=(1,))
    assert result.pop("queries") == 7 and result.pop("left_out") == 0
    assert all(value == pytest.approx(1) for value in result.values())


def test_collapsed_embedding_does_not_read_as_solved() -> None:
    labels = torch.arange(40) % 10
    result = evaluate(torch.ones(40, 3), labels, ks=(1,))
    assert result["recall@1"] < 0.3 and result["map@r"] < 0.3 and result["nmi"] < 0.9


def test_scale_and_rotation_do_not_matter() -> None:
    points, labels = blobs()
    points = points.double()
    turn = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    lengths = torch.rand(120, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.1
    expected = evaluate(points, labels, metrics=RETRIEVAL)
    assert evaluate((points * lengths) @ turn, labels, metrics=RETRIEVAL) == pytest.approx(expected)


def test_arrays_lists_and_half_precision() -> None:
    points, labels = blobs()
    points = points.half().float()
    expected = evaluate(points, labels)
    assert evaluate(points.numpy(), labels.numpy().astype(np.int32)) == expected
    assert evaluate(points.half(), labels.tolist()) == expected
    mask = np.arange(120) % 3 == 0
    assert evaluate(points, labels, query=mask) == evaluate(points, labels, query=torch.from_numpy(mask))


@pytest.mark.parametrize("query", [None, torch.arange(120) % 5 == 0])
def test_answers_that_are_known_are_measured_alike(query: torch.Tensor | None) -> None:
    points, labels = blobs()
    known = per_query(points, labels, (1, 2, 10), query)
    for metrics in (METRICS, ("recall", "nmi"), "map@r", ()):
        settings = {"ks": (10, 1), "query": query, "metrics": metrics, "per_class": True}
        expected = evaluate(points, labels, **settings)  # type: ignore[call-overload]
        assert evaluate(points, labels, answers=known, **settings) == expected  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"rows": slice(0, 60)},
            "answers must hold every query in rising order (120 rows), got 60 rows; join the shares of all processes.",
        ),
        (
            {"labels": torch.arange(120) % 7},
            "answers must have the labels of these queries, got others; pass what per_query found for this data.",
        ),
        (
            {"ks": (1, 2)},
            "answers must hold 'recall@4', which ks and metrics ask for, got recall@1, recall@2, r_precision, map@r, map; "
            "call per_query with the same ks and metrics.",
        ),
        (
            {"metrics": ()},
            "answers must hold 'recall@1', which ks and metrics ask for, got none; "
            "call per_query with the same ks and metrics.",
        ),
    ],
)
def test_answers_to_other_questions_are_refused(settings: dict[str, Any], sentence: str) -> None:
    points, labels = blobs()
    with pytest.raises(ValueError) as caught:
        evaluate(points, labels, answers=per_query(**({"embeddings": points, "labels": labels} | settings)))
    assert str(caught.value) == sentence


def test_answers_of_other_rows_are_refused() -> None:
    points, labels = blobs()
    with pytest.raises(ValueError, match=r"every query in rising order \(40 rows\), got others; join the shares"):
        answers = per_query(points, labels, query=torch.arange(120) >= 80)
        evaluate(points, labels, query=torch.arange(120) < 40, answers=answers)


class Frame:
    """What pandas' tables are to others: columns by name, and an array when asked for one."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: object) -> object:
        raise KeyError(name)

    def to_numpy(self) -> np.ndarray:
        view = self.values.view()
        view.flags.writeable = False
        return view


@pytest.mark.filterwarnings("error")
def test_tables_are_taken() -> None:
    points, labels = blobs()
    mask = np.arange(120) < 40
    frames: Any = [Frame(np.asarray(value)) for value in (points, labels, mask)]
    assert evaluate(frames[0], frames[1], query=frames[2]) == evaluate(points, labels, query=mask)


POINTS, LABELS = torch.eye(4), [0, 0, 1, 1]
NAN = torch.eye(4).masked_fill(torch.eye(4).roll(1, 0) > 0, math.nan)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"labels": [0, 1]},
            "labels must have one entry per row of embeddings (4), got 2; pass the labels of exactly these rows.",
        ),
        (
            {"embeddings": NAN},
            "embeddings must be finite, got NaN or Inf in row 0; check the model that made them or drop such rows.",
        ),
        ({"ks": (1, 0)}, "evaluate: ks must be a whole number at least 1, got 0; change ks."),
        (
            {"ks": POINTS, "query": LABELS},
            "evaluate: ks must be whole numbers at least 1, got an array of shape (4, 4); "
            "to search a gallery, join queries and gallery in embeddings and labels and mark the queries with query=.",
        ),
        ({"metrics": ("recall@10",)}, "metric 'recall@10' is not known; ask for 'recall' with ks=(10,)."),
        ({"ks": ()}, 'ks must hold at least one number, got none; leave "recall" out of metrics instead.'),
        (
            {"embeddings": POINTS[:1], "labels": [0]},
            "embeddings must hold at least 2 rows, got 1; pass at least two vectors.",
        ),
        (
            {"labels": [0, 1, 2, 3]},
            "labels must give at least one query a relevant item, got none for 4 queries; "
            "check that queries and gallery use the same labels and that some class has two items.",
        ),
        ({"metrics": ("recal",)}, "metric 'recal' is not known; did you mean 'recall'?"),
        (
            {"query": [1, 0, 1, 0]},
            "query must be a boolean mask of shape (4,), got torch.int64 of shape (4,); "
            "mark each row of embeddings as query (True) or gallery (False).",
        ),
        (
            {"query": [True, False]},
            "query must be a boolean mask of shape (4,), got torch.bool of shape (2,); "
            "mark each row of embeddings as query (True) or gallery (False).",
        ),
        (
            {"query": [True] * 4},
            "query must mark some rows as queries and leave some as gallery, got 4 queries of 4 rows; "
            "pass None to let every row ask all others.",
        ),
        (
            {"seed": -1},
            "evaluate: seed must be a whole number at least 0 and at most 9223372036854775807, got -1; change seed.",
        ),
        ({"memory": 0}, "evaluate: memory must be a whole number at least 1, got 0; change memory."),
    ],
)
def test_errors(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        evaluate(**({"embeddings": POINTS, "labels": LABELS} | arguments))  # type: ignore[arg-type]
    assert str(caught.value) == sentence


def test_one_number_of_neighbours_needs_no_list() -> None:
    labels = torch.tensor([0, 0, 1, 1])
    points = torch.eye(2)[labels]
    assert evaluate(points, labels, ks=1) == evaluate(points, labels, ks=(1,))
    assert per_query(points, labels, ks=np.int64(2), metrics="recall").values.keys() == {"recall@2"}
    with pytest.raises(ValueError, match=r"^evaluate: ks must be a whole number at least 1, got 1\.5; change ks\.$"):
        evaluate(points, labels, ks=1.5)  # type: ignore[call-overload]

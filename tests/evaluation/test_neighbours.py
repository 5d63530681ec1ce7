"""Exact neighbours: against loops, ties, blocks of every shape, what is left out, and errors."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nearkin.evaluation import neighbours
from nearkin.evaluation.duplicates import copies
from nearkin.evaluation.neighbours import block_shape, ordered, ranked_blocks
from nearkin.evaluation.similarity import directions
from tests.evaluation import plain


def random(rows: int, dim: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("k", [1, 5, 30])
def test_equals_the_double_loop(k: int) -> None:
    queries, gallery = random(17, 5), random(30, 5, seed=1)
    similarity, index = neighbours(queries, gallery, k)
    expected, rows = plain.ranking(queries.tolist(), gallery.tolist())
    assert index.tolist() == [row[:k] for row in rows]
    torch.testing.assert_close(similarity, torch.tensor(expected, dtype=torch.float64)[:, :k])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_ties_go_to_the_lower_row_whatever_the_blocks(data: st.DataObject) -> None:
    n, m = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 40))
    queries, gallery = data.draw(plain.corners(n)), data.draw(plain.corners(m))
    if data.draw(st.booleans()):
        queries, gallery = queries.double(), gallery.double()
    k = data.draw(st.integers(1, m))
    own = data.draw(st.lists(st.integers(-1, m - 1), min_size=n, max_size=n))
    block = data.draw(st.none() | st.tuples(st.integers(1, 9), st.integers(1, 45)))
    similarity, index = neighbours(queries, gallery, k, self_index=own, block=block)
    expected, rows = plain.ranking(queries.tolist(), gallery.tolist(), own)
    assert index.tolist() == [[*row, -1][:k] for row in rows]
    assert similarity.tolist() == [[*row, -math.inf][:k] for row in expected]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_copies_of_a_vector_are_exact_ties(dtype: torch.dtype) -> None:
    # Without care, the last bit of a matrix product depends on where a column stands.
    generator = torch.Generator().manual_seed(0)
    for trial in range(20):
        dim, m = 5 + trial * 9, 20 + 11 * trial
        distinct = torch.randn(m // 4, dim, generator=generator, dtype=dtype)
        which = torch.randint(len(distinct), (m,), generator=generator)
        queries = torch.randn(1 + trial % 7, dim, generator=generator, dtype=dtype)
        shape = (1 + trial % 3, 1 + 13 * trial)
        for block in (None, shape):
            similarity, index = neighbours(queries, distinct[which], m, block=block)
            for values, row in zip(similarity.tolist(), index.tolist(), strict=True):
                order = which[row].tolist()
                for one in range(m - 1):
                    if order[one] == order[one + 1]:
                        assert values[one] == values[one + 1] and row[one] < row[one + 1]
                # All copies of a vector stand together.
                changes = sum(a != b for a, b in pairwise(order))
                assert changes == len(set(order)) - 1


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-4, 0.0])
@pytest.mark.parametrize("block", [None, (50, 150), (7, 300)])
def test_float32_is_ranked_as_in_float64(spread: float, block: tuple[int, int] | None) -> None:
    # With a small spread a float32 product cannot tell the cosines apart.
    points = torch.ones(300, 20) + spread * random(300, 20, dtype=torch.float32)
    own = torch.arange(300)
    similarity, index = neighbours(points, points, 9, self_index=own, block=block)
    expected, rows = plain.ranking(points[:40].tolist(), points.tolist(), own.tolist())
    assert index[:40].tolist() == [row[:9] for row in rows]
    torch.testing.assert_close(similarity[:40], torch.tensor(expected)[:, :9], rtol=0, atol=1e-7)
    directed = directions(points)
    for part, _, places in ranked_blocks(directed, directed, 9, self_index=own, block=block, scores=False):
        assert torch.equal(places, index[part])


@pytest.mark.parametrize("memory", [1, 10_000, 100_000, 2**28])
@pytest.mark.parametrize("k", [1, 7, 60, 200])
def test_result_does_not_depend_on_memory(k: int, memory: int) -> None:
    points = random(200, 8)
    own = torch.arange(200)
    similarity, index = neighbours(points, points, k, self_index=own, memory=memory)
    expected, rows = neighbours(points, points, k, self_index=own, block=(200, 200))
    assert torch.equal(index, rows)
    torch.testing.assert_close(similarity, expected)


@pytest.mark.parametrize("block", [(1, 1), (1, 70), (70, 1), (7, 13), (64, 50), (69, 69)])
def test_result_does_not_depend_on_blocks(block: tuple[int, int]) -> None:
    points = random(70, 8)
    index = neighbours(points, points, 9, self_index=torch.arange(70), block=block)[1]
    assert torch.equal(index, neighbours(points, points, 9, self_index=torch.arange(70))[1])


def test_only_the_named_row_is_left_out_not_its_copies() -> None:
    points = torch.tensor([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]])
    similarity, index = neighbours(points, points, 3, self_index=[0, 1, -1])
    assert index.tolist() == [[1, 2, -1], [0, 2, -1], [2, 0, 1]]
    assert similarity[0, 2] == -math.inf


def test_more_places_than_items_are_filled_with_minus_one() -> None:
    similarity, index = neighbours(torch.eye(2), torch.eye(2), 4)
    assert index.tolist() == [[0, 1, -1, -1], [1, 0, -1, -1]]
    assert similarity.tolist() == [[1, 0, -math.inf, -math.inf]] * 2


@pytest.mark.parametrize("block", [None, (3, 4)])
def test_different_labels_only(block: tuple[int, int] | None) -> None:
    points, labels = random(25, 4), [row % 3 for row in range(25)]
    index = neighbours(points, points, 20, different=(labels, labels), block=block)[1]
    for i, row in enumerate(plain.ranking(points.tolist(), points.tolist())[1]):
        expected = [j for j in row if labels[j] != labels[i]]
        assert index[i].tolist() == (expected + [-1] * 20)[:20]


def test_vectors_of_any_scale_and_zero_vectors() -> None:
    points = torch.tensor([[1e30, 1e30], [1e-25, 0.0], [0.0, 0.0], [3.0, -1.0]])
    similarity, index = neighbours(points, points, 4)
    assert index[1].tolist() == [1, 3, 0, 2]
    assert similarity[2].tolist() == [0, 0, 0, 0] and index[2].tolist() == [0, 1, 2, 3]


def test_collapsed_embeddings_rank_by_row() -> None:
    points = torch.full((50, 3), 0.3)
    index = neighbours(points, points, 5, self_index=torch.arange(50))[1]
    assert index[0].tolist() == [1, 2, 3, 4, 5] and index[49].tolist() == [0, 1, 2, 3, 4]


def test_types() -> None:
    points = random(6, 3)
    assert neighbours(points, points, 2)[0].dtype == torch.float64
    assert neighbours(points.half(), points.half(), 2)[0].dtype == torch.float32
    array = points.numpy()
    assert torch.equal(neighbours(array, array, 2)[1], neighbours(points, points, 2)[1])
    assert not neighbours(points.requires_grad_(), points, 2)[0].requires_grad


def test_autocast_does_not_round_similarities() -> None:
    points = random(40, 16, dtype=torch.float32)
    plain_result = neighbours(points, points, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = neighbours(points, points, 5)
    assert torch.equal(plain_result[0], under[0]) and torch.equal(plain_result[1], under[1])


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=20, max_size=20), min_size=1, max_size=4),
    st.permutations(range(20)),
    st.integers(1, 20),
)
def test_ordered_is_a_stable_sort_by_index_cut_at_k(rows: list[list[int]], columns: list[int], k: int) -> None:
    steps, index = ordered(torch.tensor(rows), torch.tensor([columns] * len(rows)), k)
    for row, found, places in zip(rows, steps.tolist(), index.tolist(), strict=True):
        score = dict(zip(columns, row, strict=True))
        assert places == sorted(range(20), key=lambda j: (-score[j], j))[:k]
        assert found == [score[j] for j in places]


def test_copies_are_found() -> None:
    assert copies(torch.eye(3)) is None
    found = copies(torch.tensor([[0.0, 1.0], [2.0, 2.0], [-0.0, 1.0], [2.0, 2.0], [5.0, 5.0]]))
    assert found is not None
    assert found.columns.tolist() == [0, 1, 2, 3] and found.owner.tolist() == [0, 1, 0, 1]


def test_memory_bounds_the_blocks() -> None:
    for columns in (100, 60_502, 10_000_000):
        for k in (1, 1000):
            rows, width = block_shape(columns, k, 2**28)
            assert rows * width * 4 <= 2**28 and width >= min(k, columns) and rows >= 16


def test_blocks_cover_the_queries_in_order() -> None:
    points = directions(torch.eye(5))
    rows = [part for part, _, _ in ranked_blocks(points, points, 1, block=(2, 5))]
    assert rows == [slice(0, 2), slice(2, 4), slice(4, 5)]


POINTS = torch.eye(3)
NAN = torch.tensor([[0.0, 1.0, 0.0], [0.0, math.nan, 1.0]])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k": 0}, "neighbours: k must be a whole number at least 1, got 0; change k."),
        ({"memory": 0}, "neighbours: memory must be a whole number at least 1, got 0; change memory."),
        (
            {"block": (0, 1)},
            "neighbours: block rows must be a whole number at least 1, got 0; change block rows.",
        ),
        (
            {"queries": NAN},
            "queries must be finite, got NaN or Inf in row 1; check the model that made them or drop such rows.",
        ),
        (
            {"queries": torch.eye(2)},
            "queries must have the dimension of gallery (3), got 2; embed both with one model.",
        ),
        (
            {"queries": POINTS.double()},
            "queries must have the type of gallery (torch.float32), got torch.float64; give both one type.",
        ),
        (
            {"self_index": [0, 1, 3]},
            "self_index must hold gallery rows from 0 to 2 or -1 for none, got values from 0 to 3; "
            "number the rows of this gallery.",
        ),
        (
            {"self_index": [[0, 1, 2]]},
            "self_index must have shape (3,), got (1, 3); pass row numbers of the gallery, one per row of queries.",
        ),
        (
            {"self_index": [0.0, 1.0, 2.0]},
            "self_index must be an integer tensor, got torch.float32; pass row numbers of the gallery of type int64.",
        ),
        ({"gallery": POINTS[:0]}, "gallery must hold at least 1 row, got 0; pass at least one vector."),
        (
            {"self_index": [0, 1]},
            "self_index must have one entry per row of queries (3), got 2; pass row numbers of the gallery, one per row.",
        ),
    ],
)
def test_errors(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        neighbours(**({"queries": POINTS, "gallery": POINTS, "k": 1} | arguments))  # type: ignore[arg-type]
    assert str(caught.value) == sentence

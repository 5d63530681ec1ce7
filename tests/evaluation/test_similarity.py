"""The rule that rankings go by: cosines in float64 in steps, and how far a fast product may be from it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nearkin import evaluation
from nearkin.evaluation.similarity import STEPS, block_steps, directions, doubt, from_steps, pair_steps
from tests.evaluation import plain


@pytest.fixture(params=["highest", "high", "medium"])
def precision(request: pytest.FixtureRequest) -> Iterator[str]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(before)


def some(rows: int, dim: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pairs_are_scored_by_the_cosine_of_the_given_numbers(dtype: torch.dtype) -> None:
    points = some(12, 7, dtype=dtype) * torch.logspace(-20, 20, 12, dtype=dtype)[:, None]
    scored = directions(points)
    i, j = torch.meshgrid(torch.arange(12), torch.arange(12), indexing="ij")
    found = from_steps(pair_steps(scored, i.reshape(-1), scored, j.reshape(-1))).view(12, 12)
    for row, one in enumerate(points.tolist()):
        for column, other in enumerate(points.tolist()):
            assert abs(found[row, column].item() - plain.cosine(one, other)) <= 0.51 / STEPS


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([3, 64, 700]), st.floats(0, 1))
def test_products_stay_within_doubt(seed: int, dim: int, common: float) -> None:
    # A common direction makes similarities large and so their rounding.
    points = some(60, dim, seed) * (1 - common) + common * some(1, dim, seed + 1).abs()
    scored = directions(points)
    rough, fine = scored.rough(slice(None)), scored.fine(slice(None))
    assert float((rough @ rough.T - fine @ fine.T).abs().max()) < doubt(dim) / 2


def test_doubt_grows_where_torch_may_shorten_numbers(precision: str) -> None:
    points = some(300, 64)
    scored = directions(points)
    rough, fine = scored.rough(slice(None)), scored.fine(slice(None))
    assert float((rough @ rough.T - fine @ fine.T).abs().max()) < doubt(64)
    least = {"highest": 0, "high": 2**-10, "medium": 2**-8}[precision]
    assert least < doubt(64) < 10 * least + 1e-4


def test_doubt_covers_vectors_too_long_for_any_bound() -> None:
    assert doubt(10**7) == 4.0


@pytest.mark.parametrize("dim", [1, 7, 40, 333])
def test_copies_have_equal_steps_wherever_they_stand(dim: int) -> None:
    points = some(9, dim).repeat(7, 1)
    scored, every = directions(points), torch.arange(63)
    for row in range(9):
        steps = pair_steps(scored, torch.full((63,), row), scored, every)
        assert torch.equal(steps.view(7, 9), steps[:9].expand(7, 9))


def test_products_in_float64_are_within_a_step() -> None:
    points = some(50, 300)
    scored, every = directions(points), torch.arange(50)
    block = block_steps(scored, every, scored, slice(0, 50)).steps
    pairs = pair_steps(scored, every.repeat_interleave(50), scored, every.repeat(50)).view(50, 50)
    assert int((block - pairs).abs().max()) <= 1


def test_binary_codes_that_differ_in_as_many_places_are_ties() -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(2, (80, 48), generator=generator) * 2.0 - 1
    dot = codes.long() @ codes.long().T
    scored, every = directions(codes), torch.arange(80)
    for steps in (
        block_steps(scored, every, scored, every).steps,
        pair_steps(scored, every.repeat_interleave(80), scored, every.repeat(80)).view(80, 80),
    ):
        for value in dot.unique():
            assert len(steps[dot == value].unique()) == 1


def test_zero_vectors_and_huge_ones() -> None:
    points = torch.tensor([[0.0, 0.0], [3e38, 3e38], [1e-38, 0.0], [-2e38, 1e38]])
    scored = directions(points)
    assert scored.rough(slice(None)).isfinite().all()
    # Lengths below 1e-30 count as zero.
    assert pair_steps(scored, torch.tensor([0, 2]), scored, torch.tensor([1, 1])).tolist() == [0, 0]
    expected = plain.cosine([1, 1], [-2, 1])
    assert from_steps(pair_steps(scored, torch.tensor([1]), scored, torch.tensor([3]))).item() == pytest.approx(
        expected
    )


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_nearly_collapsed_vectors_rank_the_same_in_any_memory(seed: int, copied: bool) -> None:
    """Their cosines are a few steps apart, so that many lie halfway between two steps."""
    generator = torch.Generator().manual_seed(seed)
    vectors = 1 + 1e-6 * torch.randn(300, 16, generator=generator)
    if copied:
        vectors[-40:] = vectors[:40]
    metrics = ("recall", "r_precision", "map@r")
    for labels in (torch.arange(300) // 20, torch.arange(300) // 100):  # larger classes are searched by products
        once, again = (
            evaluation.per_query(vectors, labels, (1, 10), metrics=metrics, memory=memory, nearest=20)
            for memory in (2**28, 25_600)
        )
        assert torch.equal(once.nearest, again.nearest)
        assert all(torch.equal(once.values[key].nan_to_num(), again.values[key].nan_to_num()) for key in once.values)


def test_the_order_of_whole_rows_is_that_of_the_rule() -> None:
    vectors = 1 + 1e-6 * torch.randn(300, 16, generator=torch.Generator().manual_seed(10))
    scored, every = directions(vectors), torch.arange(300)
    rule = pair_steps(scored, every.repeat_interleave(300), scored, every.repeat(300)).view(300, 300)
    assert (block_steps(scored, every, scored, every).steps != rule).any()
    _, whole = evaluation.neighbours(vectors, vectors, 300)
    assert torch.equal(whole, rule.argsort(dim=1, descending=True, stable=True))

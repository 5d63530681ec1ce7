"""A step cut into stages gives the same value and the same gradient, and no stage keeps a matrix for the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from nearkin import losses
from nearkin.engine import compiled, stages
from tests.losses.cases import ROWWISE, Case, batch, gradients


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[fx.GraphModule]]:
    """Every step is cut, and its stages are run as they are; they are noted in order."""
    found: list[fx.GraphModule] = []

    def run(traced: fx.GraphModule, **options: Any) -> fx.GraphModule:
        traced.graph.lint()
        found.append(traced)
        return traced

    monkeypatch.setattr(stages, "worth", lambda matrix: True)
    monkeypatch.setattr(compiled.torch, "compile", run)
    yield found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", ROWWISE, ids=lambda case: case.id)
def test_stages_equal_the_whole(case: Case, dtype: torch.dtype, cut: list[fx.GraphModule]) -> None:
    found = []
    for engine in ("compiled", "dense"):
        loss = case.make(engine=engine).to(dtype)
        embeddings, labels = batch(3, 12)
        embeddings = embeddings.detach().to(dtype).requires_grad_(True)
        value = loss(embeddings, labels)
        found.append([value.detach(), *gradients(value, embeddings, *loss.parameters())])
    close = {} if dtype == torch.float64 else {"rtol": 1e-3, "atol": 1e-4}
    for first, second in zip(*found, strict=True):
        torch.testing.assert_close(first, second, **close)
    assert cut


def given(stage: fx.GraphModule) -> list[Tensor]:
    return [x.meta["val"] for x in stage.graph.nodes if x.op == "placeholder"]


@pytest.mark.parametrize(
    ("name", "number"),
    {
        "contrastive": 2,
        "ranked_list": 2,
        "supcon": 2,
        "binomial_deviance": 2,
        "nra": 3,
        "multi_similarity": 3,
        "circle": 3,
    }.items(),
)
def test_only_inner_products_and_row_numbers_are_handed_on(name: str, number: int, cut: list[fx.GraphModule]) -> None:
    losses.create(name, engine="compiled").double()(*batch(3, 60))
    assert len(cut) == number
    for stage in cut:
        # The inner products and no other matrix; nra's sums of slopes need only the places and slopes of its few pairs.
        assert sum(x.numel() >= 3600 for x in given(stage)) <= 1, stage.code
        # What a compiler cannot join with its neighbours would be a matrix of its own.
        nodes = [
            x for x in stage.graph.nodes if x.op == "call_function" and x.target is not torch.ops.aten.copy_.default
        ]
        assert all(stages._repeatable(x) for x in nodes if x.meta["val"].numel() >= 3600), stage.code


def run(function: Any, matrix: Tensor, *others: Tensor) -> tuple[list[Any], list[fx.GraphModule]]:
    programs: list[fx.GraphModule] = []
    step = stages.staged(
        make_fx(function)(matrix, *others),
        [matrix, *others],
        1,
        lambda x: programs.append(x) or x,  # type: ignore[func-returns-value]
    )
    return step(matrix.clone(), *others), programs


def test_a_random_matrix_is_drawn_once() -> None:
    def function(matrix: Tensor) -> tuple[Tensor, Tensor]:
        noise = torch.rand_like(matrix)
        total = (matrix + noise).sum(1)
        return total, (matrix + noise) - total[:, None]

    (total, rest), programs = run(function, torch.zeros(4, 5))
    assert len(programs) == 2
    torch.testing.assert_close(rest.sum(1), total * (1 - 5))


def test_sums_and_what_is_written_over_the_matrix_are_made_apart_unless_both_need_a_draw() -> None:
    def function(matrix: Tensor) -> tuple[Tensor, Tensor]:
        return matrix.exp().sum(1), matrix.exp() * 2

    matrix = torch.arange(6.0).reshape(2, 3)
    (total, rest), programs = run(function, matrix)
    assert len(programs) == 2
    torch.testing.assert_close((total, rest), function(matrix))

    def drawing(matrix: Tensor) -> tuple[Tensor, Tensor]:
        noise = matrix + torch.rand_like(matrix)
        return noise.sum(1), noise * 2

    (total, rest), programs = run(drawing, matrix)
    assert len(programs) == 1
    torch.testing.assert_close(rest.sum(1), total * 2)


def test_the_result_is_written_over_the_matrix_it_was_made_of() -> None:
    def function(matrix: Tensor) -> tuple[Tensor, Tensor]:
        total = matrix.sum(1)
        return total, matrix / total[:, None]

    matrix = torch.arange(1.0, 7).reshape(2, 3)
    step = stages.staged(make_fx(function)(matrix), [matrix], 1, lambda program: program)
    kept = matrix.clone()
    total, share = step(matrix)
    assert share.data_ptr() == matrix.data_ptr()
    torch.testing.assert_close(share, kept / total[:, None])


def test_a_matrix_read_after_the_result_is_left_alone() -> None:
    def function(matrix: Tensor) -> tuple[Tensor, Tensor]:
        twice = matrix * 2
        return (matrix - matrix.sum(1, keepdim=True)).sum(1), twice

    matrix = torch.arange(1.0, 7).reshape(2, 3)
    (late, twice), programs = run(function, matrix)
    assert len(programs) == 2
    torch.testing.assert_close(late, -2 * matrix.sum(1))
    torch.testing.assert_close(twice, matrix * 2)


def test_a_view_of_the_matrix_outlives_the_result() -> None:
    def function(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return matrix[:, 0], matrix * 2, matrix[:, 1].clone()

    matrix = torch.arange(1.0, 7).reshape(2, 3)
    (first, twice, copy), _ = run(function, matrix)
    assert (first.tolist(), twice.tolist(), copy.tolist()) == ([1, 4], [[2, 4, 6], [8, 10, 12]], [2, 5])


@pytest.mark.parametrize("width", [1, stages.FEW, stages.FEW + 1])
def test_writing_into_few_columns_needs_no_matrix(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix, columns = torch.rand(6, 20, generator=generator), torch.randint(20, (6, width), generator=generator)
    source = torch.rand(6, width, generator=generator)
    columns[0] = 3  # the same column several times

    def function(matrix: Tensor, columns: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        placed = matrix.scatter(1, columns[:, :1], source[:, :1])
        added = matrix.scatter_add(1, columns, source)
        return added.sum(1), added, placed.scatter(1, columns[:, :1], 7.0)

    found, programs = run(function, matrix, columns, source)
    for one, other in zip(found, function(matrix, columns, source), strict=True):
        torch.testing.assert_close(one, other)
    kinds = {str(x.target) for program in programs for x in program.graph.nodes}
    assert ("aten.scatter_add.default" in kinds) == (width > stages.FEW)
    assert not any("scatter.src" in kind or "scatter.value" in kind for kind in kinds)

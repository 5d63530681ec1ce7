"""Legal but degenerate batches: finite loss, finite gradient, zero where the sets are empty; NaN never hides."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nearkin import losses
from tests.losses.cases import ALL, CLASSES, DIM, PAIR, Case, batch, gradients

N = 8
Batch = tuple[Tensor, Tensor]


def _labels(*values: int) -> Tensor:
    return torch.tensor(values)


def _spread(dtype: torch.dtype = torch.float32) -> Tensor:
    return batch(0, N, grad=False)[0].to(dtype)


BATCHES: dict[str, Callable[[], Batch]] = {
    "one class": lambda: (_spread(), torch.zeros(N, dtype=torch.long)),
    "no positives": lambda: (_spread()[:CLASSES], torch.arange(CLASSES)),
    "two rows of one class": lambda: (_spread()[:2], _labels(0, 0)),
    "two rows of two classes": lambda: (_spread()[:2], _labels(0, 1)),
    "duplicates": lambda: (_spread()[[0, 0, 1, 1, 2, 2, 0, 0]], _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "all equal": lambda: (_spread()[[0] * N], _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "zero vectors": lambda: (torch.zeros(N, DIM), _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "some zero vectors": lambda: (
        _spread() * _labels(0, 1, 1, 0, 1, 1, 1, 1)[:, None],
        _labels(0, 0, 1, 1, 2, 2, 3, 3),
    ),
    "opposite vectors": lambda: (torch.cat([_spread()[:4], -_spread()[:4]]), _labels(0, 1, 2, 3, 0, 1, 2, 3)),
    "huge float32": lambda: (_spread() * 1e37, _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "tiny float32": lambda: (_spread() * 1e-37, _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "float16": lambda: (_spread().half(), _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "largest float16": lambda: (torch.sign(_spread()).half() * 65504, _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "smallest float16": lambda: (torch.sign(_spread()).half() * 6e-8, _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "bfloat16": lambda: (_spread().bfloat16(), _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "largest bfloat16": lambda: (torch.sign(_spread()).bfloat16() * 3.3e38, _labels(0, 0, 1, 1, 2, 2, 3, 3)),
    "smallest bfloat16": lambda: (torch.sign(_spread()).bfloat16() * 1e-38, _labels(0, 0, 1, 1, 2, 2, 3, 3)),
}


@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_loss_and_gradient_are_finite(case: Case, kind: str) -> None:
    embeddings, labels = BATCHES[kind]()
    if case.name == "spectral_clust" and torch.linalg.matrix_rank(embeddings.double()) >= len(embeddings):
        pytest.skip("spectral_clust refuses a batch that is not larger than its rank")
    embeddings.requires_grad_(True)
    loss = case.make().float()
    for value in [loss(embeddings, labels)] + ([loss(embeddings, labels, reduction="none")] if case.rowwise else []):
        assert torch.isfinite(value).all()
        for grad in gradients(value.sum(), embeddings, *loss.parameters()):
            assert torch.isfinite(grad).all()


@pytest.mark.parametrize("kind", ["duplicates", "all equal", "zero vectors", "one class", "no positives"])
@pytest.mark.parametrize("case", [case for case in ALL if case.rowwise], ids=lambda case: case.id)
def test_blocked_is_finite_too(case: Case, kind: str) -> None:
    embeddings, labels = BATCHES[kind]()
    embeddings.requires_grad_(True)
    loss = case.make(engine="blocked").float()
    value = loss(embeddings, labels)
    assert torch.isfinite(value)
    assert all(torch.isfinite(grad).all() for grad in gradients(value, embeddings, *loss.parameters()))


ZERO_WITHOUT_BOTH = ["lifted_structure", "triplet", "quadruplet", "histogram", "circle", "angular"]
ZERO_WITHOUT_POSITIVES = [*ZERO_WITHOUT_BOTH, "supcon", "nt_xent", "smooth_ap", "recall_at_k"]


@pytest.mark.parametrize(
    "case", [case for case in PAIR if case.name in ZERO_WITHOUT_POSITIVES], ids=lambda case: case.id
)
def test_without_positives_there_is_nothing_to_learn(case: Case) -> None:
    embeddings, labels = _spread().double()[:CLASSES].requires_grad_(True), torch.arange(CLASSES)
    value = case.make()(embeddings, labels)
    assert value.item() == 0
    assert gradients(value, embeddings)[0].abs().max() == 0


@pytest.mark.parametrize(
    "case", [case for case in PAIR if case.name in [*ZERO_WITHOUT_BOTH, "nt_xent"]], ids=lambda case: case.id
)
def test_without_negatives_there_is_nothing_to_learn(case: Case) -> None:
    embeddings, labels = _spread().double().requires_grad_(True), torch.zeros(N, dtype=torch.long)
    value = case.make()(embeddings, labels)
    assert value.item() == 0
    assert gradients(value, embeddings)[0].abs().max() == 0


def test_a_collapsed_batch_does_not_read_as_solved() -> None:
    embeddings, labels = BATCHES["all equal"]()
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for engine in ("dense", "blocked"):
            loss = losses.create("ranked_list", alpha=1.2, engine=engine)
            assert loss(embeddings.to(dtype), labels).item() == pytest.approx(1.2, abs=1e-6)
    for name in losses.names():
        if issubclass(losses.LOSSES[name], losses.PairLoss) and name not in ("nra", "spectral_clust"):
            assert losses.create(name)(embeddings.double(), labels).item() > 0 or name in ("triplet", "margin"), name


def test_collapse_costs_all_triplets_their_margin() -> None:
    embeddings, labels = BATCHES["all equal"]()
    assert losses.create("triplet", miner="hard", margin=0.1)(embeddings, labels).item() == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("engine", ["dense", "blocked"])
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_nan_and_inf_never_hide(case: Case, engine: str, bad: float) -> None:
    if engine == "blocked" and not case.rowwise:
        pytest.skip("runs dense only")
    embeddings, labels = batch(0, N, grad=False)
    embeddings[5, 1] = bad
    loss = case.make(engine=engine)
    assert math.isnan(loss(embeddings, labels).item())
    if case.rowwise:
        assert torch.isnan(loss(embeddings, labels, reduction="none")).any()
    if not case.proxy:
        clean = batch(1, 4, grad=False)[0]
        assert math.isnan(loss(clean, labels[:4], embeddings, labels).item())


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_autocast_does_not_lower_the_precision(case: Case) -> None:
    embeddings, labels = batch(0, N, dtype=torch.float32, grad=False)
    loss = case.make().float()
    loss.eval()
    expected = loss(embeddings, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(embeddings, labels)
    assert value.dtype == torch.float32
    assert value.item() == expected.item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_half_precision_is_computed_in_float32(case: Case, dtype: torch.dtype) -> None:
    embeddings, labels = batch(0, N, grad=False)
    half = embeddings.to(dtype).requires_grad_(True)
    wide = half.detach().float().requires_grad_(True)
    loss = case.make().float()
    loss.eval()
    value, expected = loss(half, labels), loss(wide, labels)
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    grad = gradients(value, half)[0]
    assert grad.dtype == dtype
    torch.testing.assert_close(grad, gradients(expected, wide)[0].to(dtype))


@pytest.mark.parametrize("mode", ["auto", "blocked"])
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_going_backward_under_autocast_does_not_lower_the_precision(case: Case, mode: str) -> None:
    if mode == "blocked" and not case.rowwise:
        pytest.skip("runs dense only")
    loss = case.make(engine=mode).float()
    loss.eval()  # random miners draw the same twice
    found = []
    for enabled in (False, True):
        embeddings, labels = batch(0, N, dtype=torch.float32)
        value = loss(embeddings, labels)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            found.append(gradients(value, embeddings, *loss.parameters()))
    for first, second in zip(*found, strict=True):
        assert torch.equal(first, second)

"""The GPU gives what the CPU gives, and the same every time."""

from __future__ import annotations

import pytest
import torch

from nearkin.evaluation import evaluate, join, kmeans, neighbours, per_query
from nearkin.samplers import HardClass, Smart

pytestmark = pytest.mark.gpu


def points(rows: int = 700) -> tuple[torch.Tensor, torch.Tensor]:
    """Blobs with a hundred exact copies."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(rows) % 40
    centers = torch.randn(40, 16, generator=generator, dtype=torch.float64)
    vectors = centers[labels] + 1.5 * torch.randn(rows, 16, generator=generator, dtype=torch.float64)
    vectors[-100:] = vectors[:100]
    return vectors, labels


@pytest.mark.parametrize("block", [None, (50, 33), (700, 700)])
@pytest.mark.parametrize("k", [3, 300, 700])
def test_neighbours(k: int, block: tuple[int, int] | None) -> None:
    vectors, own = points()[0], torch.arange(700)
    index = neighbours(vectors.cuda(), vectors.cuda(), k, self_index=own, block=block)[1]
    assert torch.equal(index.cpu(), neighbours(vectors, vectors, k, self_index=own)[1])


def test_evaluate() -> None:
    vectors, labels = points()
    assert evaluate(vectors.cuda(), labels) == pytest.approx(evaluate(vectors, labels), abs=1e-12)


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [4, 40, 300])
def test_every_query(classes: int, dtype: torch.dtype, precision: str) -> None:
    """Classes of 175 are sorted, those of 2 or 3 counted; TF32 must not show."""
    vectors = points()[0].to(dtype)
    labels = torch.arange(700) % classes
    expected = per_query(vectors, labels, nearest=5)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        whole = per_query(vectors.cuda(), labels, nearest=5)
        shares = [per_query(vectors.cuda(), labels, nearest=5, rows=slice(part, None, 3)) for part in range(3)]
        recall = per_query(vectors.cuda(), labels, metrics="recall").values
    finally:
        torch.set_float32_matmul_precision(before)
    for found in (whole, join(shares)):
        assert torch.equal(found.nearest.cpu(), expected.nearest)
        for name, value in expected.values.items():
            # Precisions are added up in another order.
            torch.testing.assert_close(found.values[name].cpu(), value, rtol=0, atol=1e-14, equal_nan=True)
    assert all(torch.equal(recall[name].cpu(), expected.values[name]) for name in recall)


def test_runs_agree_bit_for_bit() -> None:
    vectors, labels = points()
    vectors = vectors.float().cuda()
    assert torch.equal(kmeans(vectors, 40).centers, kmeans(vectors, 40).centers)
    assert evaluate(vectors, labels) == evaluate(vectors, labels)


def test_samplers_take_embeddings_from_the_gpu() -> None:
    vectors, labels = points()
    for sampler in (HardClass(labels, 5, 3), Smart(labels, 30)):
        sampler.update(vectors)
        expected = list(sampler)
        sampler.update(vectors.cuda())
        sampler.set_epoch(0)  # the same one again
        assert list(sampler) == expected


@pytest.mark.parametrize("metrics", [("recall",), ("recall", "r_precision", "map@r")])
@pytest.mark.parametrize("classes", [300, 2000])
def test_screening_by_the_device_equals_counting(
    classes: int, metrics: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large enough that some places are known to be deep by a sample alone; every seventh row is a query or all are."""
    monkeypatch.setattr("nearkin.evaluation.screen.ENOUGH", 0)
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(20_000) % classes
    centers = torch.randn(classes, 40, generator=generator)
    vectors = centers[labels] + 1.6 * torch.randn(len(labels), 40, generator=generator)
    vectors[-500:] = vectors[:500]
    for query in (None, torch.arange(len(labels)) % 7 == 0):
        expected = per_query(vectors, labels, (1, 10, 100, 1000), query, metrics=metrics)
        found = per_query(vectors.cuda(), labels, (1, 10, 100, 1000), query, metrics=metrics)
        assert 0.05 < expected.means()["recall@1"] < 0.95
        for name, value in expected.values.items():
            torch.testing.assert_close(found.values[name].cpu(), value, rtol=0, atol=1e-14, equal_nan=True)

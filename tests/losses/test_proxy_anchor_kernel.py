"""Proxy-Anchor in two walks and rows in one pass, run on a CPU by the kernel language's interpreter, against dense."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from nearkin import engine, losses


@pytest.fixture(autouse=True, scope="module")
def _kind_of_mask() -> None:
    """Once is enough: no mask is made."""


SCRIPT = """
import torch
from nearkin import losses
from nearkin.engine import rows_kernel
from nearkin.losses import proxy_anchor_kernel
from nearkin.vectors import inverse_norms, through_unit

proxy_anchor_kernel.STRETCH, proxy_anchor_kernel.ENTRIES = 16, 40
generator = torch.Generator().manual_seed(0)
vectors = torch.randn(23, 12, generator=generator) * torch.logspace(-3, 3, 23)[:, None]
vectors[5] = vectors[4]
vectors[6] = 0
labels = torch.randint(0, 4, (23,), generator=generator)  # classes 4 and 5 have no sample
for options in ({}, {"margin": 0.3, "scale": 8.0}):
    for dtype, close in ((torch.float32, 1e-5), (torch.bfloat16, 0.2)):
        loss = losses.create("proxy_anchor", classes=6, dim=12, engine="dense", **options)
        found = []
        for kind in ("walk", "again", "dense"):
            leaf = vectors.to(dtype, copy=True).requires_grad_(True)
            loss.proxies.grad = None
            value = loss(leaf, labels) if kind == "dense" else loss.walk(leaf, labels)
            (value * 3).backward(retain_graph=True)
            if kind == "again":
                leaf.grad = loss.proxies.grad = None
                (value * 3).backward()
            found.append((value.detach(), leaf.grad.float(), loss.proxies.grad.clone()))
        table = torch.stack([labels, labels + 1], 1).int()[:, 0]  # labels that do not lie side by side
        assert not table.is_contiguous()
        assert torch.equal(loss.walk(vectors.to(dtype), table), loss.walk(vectors.to(dtype), labels))
        for part in ("samples", "proxies"):  # what is frozen gets no gradient, and the other the same one
            leaf = vectors.to(dtype, copy=True).requires_grad_(part == "samples")
            loss.proxies.requires_grad_(part == "proxies")
            loss.proxies.grad = None
            (loss.walk(leaf, labels) * 3).backward()
            alone = leaf.grad.float() if part == "samples" else loss.proxies.grad
            torch.testing.assert_close(alone, found[0][1 if part == "samples" else 2])
            loss.proxies.requires_grad_(True)
        with torch.no_grad():
            assert not loss.walk(vectors.to(dtype), labels).requires_grad
        for way in found[:2]:
            for one, other in zip(way, found[2]):
                scale = other.abs().amax(-1, keepdim=True)
                assert ((one - other).abs() <= close * scale + 1e-9).all(), (options, dtype, one - other, other)
                assert scale.max() > 0

rows = torch.randn(9, 12, generator=generator)
rows[3] = 0
unit, inverse = rows_kernel.unit(rows, torch.float32)
torch.testing.assert_close(inverse, inverse_norms(rows))
torch.testing.assert_close(unit, rows * inverse)
grad, scale = torch.randn(9, 12, generator=generator), torch.tensor(0.5)
expected = through_unit(grad, lambda part: unit[part], inverse, scale, torch.empty_like(grad))
found = rows_kernel.through_unit(grad, rows, inverse, inverse * scale, torch.empty_like(grad))
torch.testing.assert_close(found, expected)
turned = [x.T.contiguous().T for x in (grad, rows)]
turned = rows_kernel.through_unit(*turned, inverse, inverse * scale, torch.empty_like(grad))
torch.testing.assert_close(turned, expected)
grad[1, 2], grad[2] = torch.nan, 1e30
short = rows_kernel.through_unit(grad, rows, inverse, inverse, torch.empty_like(grad).half())
assert short[1].isnan().all() and short[2].isfinite().all()
grad[4] = torch.inf
assert not rows_kernel.through_unit(grad, rows, inverse, inverse, torch.empty_like(grad))[4].isfinite().any()

# Vectors that lie column by column, as a transposed product leaves them, through the engine.
from nearkin import engine
from nearkin.engine import blocked
for name in ("ranked_list", "multi_similarity", "proxy_nca"):
    proxy = {"classes": 6, "dim": 12} if name == "proxy_nca" else {}
    found = []
    for kernel in (True, False):
        blocked._by_kernel = lambda vectors: kernel
        torch.manual_seed(0)
        leaf = vectors.T.contiguous().T.requires_grad_(True)
        losses.create(name, engine="blocked", **proxy)(leaf, labels).backward()
        found.append(leaf.grad)
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_two_walks_equal_dense() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


class OfOnesOwn(losses.ProxyAnchor):
    name = "of_ones_own"

    def block(self, *given: Any) -> torch.Tensor:
        return super().block(*given) * 2


def test_it_is_for_large_16_bit_batches_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearkin.kernels.usable", lambda: True)
    batch = torch.randn(2**14, 4).bfloat16()
    loss, other = (kind(classes=2**13, dim=4) for kind in (losses.ProxyAnchor, OfOnesOwn))
    assert not loss.walks(batch, "compiled")  # not on a CPU

    class There:
        """As if it were elsewhere."""

        is_cuda, dtype = True, torch.bfloat16

        def __len__(self) -> int:
            return len(batch)

    assert loss.walks(There(), "compiled") and not loss.walks(There(), "dense")  # type: ignore[arg-type]
    assert not other.walks(There(), "compiled")  # type: ignore[arg-type]


@pytest.mark.gpu
def test_a_device_is_as_exact_as_plain_torch() -> None:
    """Over several batches: the error of one value is a matter of luck."""
    off = torch.tensor([errors_of_a_batch(seed) for seed in range(8)]).square().mean(0).sqrt()
    assert (off[:, 0] <= 2 * off[:, 1] + 1e-6).all(), off


def errors_of_a_batch(seed: int) -> list[tuple[float, float]]:
    """Ours and plain torch's, of the value, the gradient of the batch and that of the proxies."""
    n, classes, dim = 16384, 4096, 64
    generator = torch.Generator("cuda").manual_seed(seed)
    labels = torch.randint(0, classes, (n,), device="cuda", generator=generator)
    vectors = torch.randn(n, dim, device="cuda", generator=generator).bfloat16()
    kinds = {
        name: losses.create("proxy_anchor", classes=classes, dim=dim, engine=name) for name in ("compiled", "dense")
    }
    kinds["dense"].load_state_dict(kinds["compiled"].state_dict())
    found = {}
    for kind in ("compiled", "again", "plain", "exact"):
        loss = kinds["compiled" if kind in ("compiled", "again") else "dense"].cuda()
        loss = loss.double() if kind == "exact" else loss
        leaf = vectors.to(torch.float64 if kind == "exact" else torch.bfloat16, copy=True).requires_grad_(True)
        loss.proxies.grad = None
        if kind == "plain":
            plan = loss.plan(leaf, labels)
            value = engine.dense(plan, dot=(plan.queries.bfloat16() @ plan.columns.bfloat16().T).float())
        else:
            assert loss.walks(leaf, loss.engine) == (kind != "exact")
            value = loss(leaf, labels)
        value.backward()
        assert leaf.grad is not None and loss.proxies.grad is not None
        found[kind] = value.detach().double(), leaf.grad.double(), loss.proxies.grad.double()
    truth = found.pop("exact")
    assert all(torch.equal(a, b) for a, b in zip(found["compiled"], found["again"], strict=True))
    return [
        (float((ours - exact).norm() / exact.norm()), float((plain - exact).norm() / exact.norm()))
        for ours, plain, exact in zip(found["compiled"], found["plain"], truth, strict=True)
    ]

"""The hand-written step of the ranked list, run on a CPU by the kernel language's interpreter, against dense."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nearkin import engine, losses


@pytest.fixture(autouse=True, scope="module")
def _kind_of_mask() -> None:
    """Once is enough: the kernel looks at labels."""


SCRIPT = """
import dataclasses, torch
from nearkin import engine, losses
from nearkin.engine import product, stages
from nearkin.losses import ranked_list_kernel

ranked_list_kernel.STRETCH = 16
stages.worth = lambda matrix: True
product.NARROW = 0
calls = []
original = ranked_list_kernel.step
ranked_list_kernel.step = lambda *given, **options: calls.append(given[0].dtype) or original(*given, **options)
generator = torch.Generator().manual_seed(0)
vectors = torch.randn(37, 24, generator=generator)
labels = torch.randint(0, 9, (37,), generator=generator)
vectors[5], labels[5] = vectors[4], labels[4]  # a copy of a positive
vectors[7], labels[8] = vectors[6], 100  # a copy of a negative, and somebody without a positive
vectors[9] = 0
others = torch.randn(21, 24, generator=generator)
their = torch.randint(0, 9, (21,), generator=generator)
settings = [{}, {"alpha": 0.3, "margin": 0.1}, {"temperature": 0.0, "balance": 0.5}, {"gallery_gradient": True}]
older = torch.cat([vectors[:20] + 2 * torch.randn(20, 24, generator=generator), others[20:]])  # what queries were once
places = torch.where(torch.arange(37) < 20, torch.arange(37), -1)
batches = [(labels, None, None, None), (labels, others, their, None)]
batches.append((labels, older, torch.cat([labels[:20], their[20:]]), places))
batches.append((labels, older, their, places))  # their own columns are of another class
for options in settings:
    for *columns, own in batches:
        for products, close in ((None, 2e-5), (torch.bfloat16, 2e-2)):
            loss = losses.create("ranked_list", **options)
            found = []
            for kind in ("kernel", "dense"):
                leaf = vectors.clone().requires_grad_(True)
                plan = loss.plan(leaf, *columns, self_index=own, weights=torch.linspace(0.5, 2, 37))
                if kind == "kernel":
                    plan = dataclasses.replace(plan, products=products, kernel=loss.kernel)
                    value = engine.run(plan, "compiled:aot_eager")
                else:  # of products rounded alike: a pair at the edge of a set is in it for both or for none
                    points = plan.columns if plan.column_gradient else plan.columns.detach()
                    short = products or torch.float32
                    value = engine.dense(plan, dot=(plan.queries.to(short) @ points.to(short).T).float())
                value.backward()
                found.append((value.detach(), leaf.grad))
            for one, other in zip(*found):
                off = (one - other).norm()
                assert off <= close * other.norm() + 1e-6, (options, products, off / other.norm())
    plan = dataclasses.replace(loss.plan(vectors, labels), kernel=loss.kernel)
    rows = engine.run(plan, "compiled:aot_eager", "none")
    torch.testing.assert_close(rows, engine.run(loss.plan(vectors, labels), "dense", "none"))
print(len(calls), sorted({str(kind) for kind in calls}))
cosines = torch.nn.functional.normalize(vectors) @ torch.nn.functional.normalize(others).T
facts = {"alpha": 1.2, "inside": 0.8, "temperature": 10.0, "balance": 1.0, "snap": 1e-6}
outside = [
    original(cosines.clone(), labels, their, torch.full((37,), place), torch.ones(37), True, False, **facts)
    for place in (-1, 2**40)
]
assert torch.equal(*outside)
own = torch.arange(37)
whole = labels, labels, own
spread = [torch.stack([x, x + 1, x + 2], 1)[:, 0] for x in whole]  # every third number of a table
assert not any(x.is_contiguous() for x in spread)
unit = torch.nn.functional.normalize(vectors)
found = [original((unit @ unit.T).clone(), *given, torch.ones(37), True, True, **facts) for given in (whole, spread)]
assert torch.equal(*found)
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_the_step_by_hand_equals_dense() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "36 ['torch.bfloat16', 'torch.float32']"


def test_it_is_for_large_16_bit_batches_without_a_miner() -> None:
    vectors, labels = torch.randn(6, 4), torch.tensor([0, 0, 1, 1, 2, 2])
    for options in ({}, {"miner": "semihard"}):
        plan = losses.create("ranked_list", **options).plan(vectors.bfloat16(), labels)
        assert plan.kernel is None  # not on a CPU
    assert losses.create("ranked_list", temperature=31.0).kernel is None  # exponentials would vanish


@pytest.mark.gpu
@pytest.mark.parametrize("n", [4096, 5000])
def test_a_device_is_as_exact_as_plain_torch(n: int) -> None:
    """Against float64, beside plain torch that rounds the products of 16-bit vectors."""
    generator = torch.Generator("cuda").manual_seed(0)
    labels = torch.arange(n, device="cuda") // 4
    vectors = torch.randn(n, 64, device="cuda", generator=generator)
    vectors += torch.randn(n, 64, device="cuda", generator=generator)[labels]
    found = {}
    for kind in ("compiled", "plain", "exact"):
        leaf = vectors.bfloat16().to(torch.float64 if kind == "exact" else torch.bfloat16).requires_grad_(True)
        loss = losses.create("ranked_list", engine="compiled" if kind == "compiled" else "dense")
        plan = loss.plan(leaf, labels)
        assert (plan.kernel is None) == (kind == "exact")
        dot = (plan.queries.bfloat16() @ plan.columns.detach().bfloat16().T).float() if kind == "plain" else None
        value = loss(leaf, labels) if dot is None else engine.dense(plan, dot=dot)
        value.backward()
        assert leaf.grad is not None
        found[kind] = value.detach().double(), leaf.grad.double()
    truth = found.pop("exact")
    off = {
        kind: [float((a - b).norm() / b.norm()) for a, b in zip(got, truth, strict=True)] for kind, got in found.items()
    }
    assert off["compiled"][0] < 2e-3
    assert off["compiled"][1] < 2 * off["plain"][1] < 0.05

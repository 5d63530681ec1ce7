"""Shift, shortcut and rectifier in one pass, run on a CPU by the kernel language's interpreter, against torch."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from nearkin.models.fold import bent, unshifted

SCRIPT = """
import itertools
import torch
from nearkin.models import bend_kernel

bend_kernel.BLOCK, bend_kernel.ROWS, bend_kernel.WIDE, bend_kernel.TURNS = 32, 4, 8, 3
for channels, shorted, learned in itertools.product((5, 8, 24), (False, True), (False, True)):
    generator = torch.Generator().manual_seed(channels)
    def draw(*shape):
        return torch.randn(*shape, generator=generator)
    start, short = (draw(3, channels, 5, 4).contiguous(memory_format=torch.channels_last) for _ in range(2))
    shift, upstream = draw(channels), draw(3, channels, 5, 4)
    start[0, 0, 0, 0] = torch.nan
    results = []
    for kernel in (True, False):
        learns = zip((start, shift, short), (True, learned, shorted), strict=True)
        leaves = [leaf.clone().requires_grad_(learn) for leaf, learn in learns]
        value = leaves[0] * 1
        other = leaves[2] if shorted else None
        if kernel:
            found = bend_kernel.bend(value, leaves[1], other)
            assert found.data_ptr() == value.data_ptr()
        else:
            found = value + leaves[1][:, None, None]
            found = (found if other is None else found + other).relu()
        wanted = [leaf for leaf in leaves if leaf.requires_grad and (shorted or leaf is not leaves[2])]
        results.append([found.detach(), *torch.autograd.grad(found, wanted, upstream)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
    assert results[0][0].isnan().sum() == 1

# A whole network, in float32, since the interpreter cuts 16-bit numbers off instead of rounding them.
from nearkin import models
from nearkin.models import fold

bend_kernel.BLOCK, bend_kernel.ROWS, bend_kernel.WIDE = 4096, 64, 64
fold.HALF = (torch.float32,)
model = models.create("resnet18", dim=4, frozen_batch_norm=True, seed=0).train().to(memory_format=torch.channels_last)
for module in model.modules():
    if isinstance(module, torch.nn.BatchNorm2d):
        module.running_var.uniform_(0.5, 1.5)
        torch.nn.init.uniform_(module.bias, -0.1, 0.1)
images, found = torch.rand(2, 3, 32, 32).contiguous(memory_format=torch.channels_last), []
calls, real = [], bend_kernel.bend
bend_kernel.bend = lambda *given: calls.append(given[2] is not None) or real(*given)
for kernel in (True, False):
    fold._one_pass = lambda value: kernel
    model.zero_grad()
    (embeddings,) = model(images).values()
    embeddings.square().sum().backward()
    found.append([embeddings.detach(), *(parameter.grad.clone() for parameter in model.parameters())])
assert (len(calls), sum(calls)) == (17, 8)
for one, other in zip(*found, strict=True):
    assert (one - other).norm() <= 1e-4 * other.norm()

# Derivatives of derivatives.
found = []
for kernel in (True, False):
    torch.manual_seed(0)
    leaf = torch.randn(2, 8, 3, 3).contiguous(memory_format=torch.channels_last).requires_grad_()
    shift = torch.randn(8, requires_grad=True)
    value = bend_kernel.bend(leaf**3, shift, None) if kernel else (leaf**3 + shift[:, None, None]).relu()
    slopes = torch.autograd.grad(value.square().sum(), (leaf, shift), create_graph=True)
    found.append(torch.autograd.grad(sum(slope.square().sum() for slope in slopes), (leaf, shift)))
for one, other in zip(*found, strict=True):
    torch.testing.assert_close(one, other)
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_one_pass_is_what_torch_does_in_several() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("learned", [True, False])
def test_the_device_does_it_in_one_pass(learned: bool) -> None:
    torch.manual_seed(0)
    pairs = [(nn.Conv2d(16, 24, 1, bias=False), nn.BatchNorm2d(24).eval()) for _ in range(2)]
    layers = nn.ModuleList(layer for pair in pairs for layer in pair).cuda().to(memory_format=torch.channels_last)
    layers.requires_grad_(learned)
    images = torch.randn(6, 16, 9, 9, device="cuda").contiguous(memory_format=torch.channels_last).requires_grad_(True)
    with torch.autocast("cuda", torch.bfloat16):
        short = unshifted(*pairs[1], images)
        assert short[1] is not None
        found = bent(*pairs[0], images, short)
        assert "Bend" in type(found.grad_fn).__name__
    expected = (pairs[0][1](pairs[0][0](images)) + pairs[1][1](pairs[1][0](images))).relu()
    assert (found.float() - expected).norm() < 0.01 * expected.norm()
    inputs = [images, *(x for x in layers.parameters() if x.requires_grad)]
    upstream = torch.randn_like(expected)
    ours = torch.autograd.grad(found, inputs, upstream.to(found.dtype))
    for one, other in zip(ours, torch.autograd.grad(expected, inputs, upstream), strict=True):
        assert (one.float() - other).norm() < 0.05 * other.norm()

"""The screening of pairs for a GPU, run on a CPU by the kernel language's interpreter, against counting in full."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import torch
from nearkin.evaluation import screen
from nearkin.evaluation.layout import layout
from nearkin.evaluation.places import places
from nearkin.evaluation.positives import all_positives, nearest_positives
from nearkin.evaluation.similarity import directions

screen.SAMPLE, screen.SLAB, screen.LEAST = 2, 1, 5
again = 0
for seed in range(2):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 20, (70,), generator=generator)
    centers = torch.randn(20, 12, generator=generator)
    points = centers[labels] + 1.2 * torch.randn(70, 12, generator=generator)
    points[-9:] = points[:9]
    every, asks = torch.arange(70), torch.rand(70, generator=generator) < 0.5
    for query in (None, asks):
        asking, gallery = (every, every) if query is None else (every[query], every[~query])
        rows = layout(labels, asking, gallery, own=query is None)
        scored = directions(points)
        wanted = torch.ones(len(rows.queries), dtype=torch.bool)
        for found in (all_positives(scored, rows, wanted), nearest_positives(scored, rows, 2**20)):
            truth = places(scored, rows, found, 2**20)
            for deepest in (10**6, 3):
                depth = torch.full_like(found.item, deepest)
                got = screen.screened(scored, rows, found, depth, 1, side=16)
                again += got.again
                assert torch.where(truth <= depth, got.places == truth, got.places > depth).all()
                same = found.query[1:] == found.query[:-1]
                assert (got.places[1:] > got.places[:-1])[same].all()
print("scored again:", again)
screen.PLENTY, screen.CROWDED = 3, 10**9
scored = directions(1 + 1e-6 * torch.randn(70, 12, generator=generator))  # all vectors nearly one
rows = layout(labels, every, every, own=True)
found = nearest_positives(scored, rows, 2**20)
try:
    screen.screened(scored, rows, found, torch.full_like(found.item, 10**6), 1, side=16)
    raise SystemExit("crowds must be left to the usual way of counting")
except screen.CrowdedError:
    pass
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_screening_finds_every_place_that_matters() -> None:
    root = Path(__file__).parents[2]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.rsplit(":", 1)[1]) > 100  # copies and close pairs were there to be told apart

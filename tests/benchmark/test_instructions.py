"""Instructions are counted where there is no GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "instructions.py"
pytest.importorskip("triton", reason="counting needs the kernel language's compiler")


def test_every_stage_of_a_loss_is_counted() -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "contrastive"], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    rows = [line.split() for line in run.stdout.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["contrastive", "0"], ["contrastive", "1"], ["contrastive", "all"]]
    every = [float(row[2]) for row in rows[1:]]
    assert every[2] == pytest.approx(every[0] + every[1], abs=0.11)
    # A walk over the matrix reads, compares classes and adds; a hundred would be another program.
    assert all(10 < number < 60 for number in every[:2])
    assert all(0 < float(row[3]) < float(row[2]) for row in rows[1:3])


def test_an_unknown_loss_is_named() -> None:
    run = subprocess.run([sys.executable, str(SCRIPT), "nothing"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "losses must be some of multi_similarity" in run.stderr and "got nothing" in run.stderr

"""The same on a real Ray cluster, started here."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from nearkin import results
from nearkin.benchmark import grid as grids
from nearkin.cli import main
from tests.benchmark.grids import grid
from tests.benchmark.test_bench import ROOT, ended, steps, until

pytest.importorskip("ray", reason="ray is not installed")


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Processes of its cluster that are at a run."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # ended meanwhile
            if "ray::one_run" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_a_killed_worker_of_the_cluster_costs_nothing(tmp_path: Path) -> None:
    path = grid(tmp_path, losses='["margin", {label = "short", loss = "triplet", epochs = 2}]', epochs=40)
    first, _ = grids.read(path).jobs
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    words = ["bench", str(path), "--out", str(tmp_path / "out"), "--executor", "ray", "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nearkin", *words],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        until(lambda: steps(first.folder(tmp_path / "out")) > 20 and workers(process))
        workers(process)[0].kill()
    finally:
        shown = ended(process)
        print(shown)
    assert process.returncode == 0, shown
    assert "tried again: the worker of the cluster was lost" in shown, shown
    assert all(result.done for result in results.read(tmp_path / "out"))
    assert "2 of 2 runs done" in shown


def test_an_address_where_nobody_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", str(grid(tmp_path)), "--out", str(tmp_path / "out"), "--executor", "ray"]
    assert main([*words, "--address", "127.0.0.1:1"]) == 2
    assert "address must be that of a Ray cluster that answers" in capsys.readouterr().err

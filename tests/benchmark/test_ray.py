"""The same on a real Ray cluster, started here."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from nearkin import results
from nearkin.benchmark import grid as grids
from nearkin.benchmark import schedule
from nearkin.cli import main
from nearkin.train.stop import TWICE
from tests.benchmark.grids import grid
from tests.benchmark.test_bench import ROOT, SLOW, ended, saved, steps, stopping, until

pytest.importorskip("ray", reason="ray is not installed")


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
for name in ("RAY_AUTH_MODE", "RAY_ADDRESS"):  # left by what ran before in this process
    ENVIRONMENT.pop(name, None)


def bench(path: Path, out: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """A benchmark on Ray in a process of its own; leave the result of this to ``ended``."""
    command = [sys.executable, "-m", "nearkin", "bench", str(path), "--out", str(out), "--executor", "ray", *words]
    return subprocess.Popen(
        command, env=ENVIRONMENT | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


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
    process = bench(path, tmp_path / "out", "--workers", "1")
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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_let_all_runs_save(number: signal.Signals, code: int, tmp_path: Path) -> None:
    path = grid(tmp_path, epochs=SLOW, checkpoint_every=1e9)
    jobs = grids.read(path).jobs
    process = bench(path, tmp_path / "out", "--workers", "2")
    try:
        until(lambda: all(steps(job.folder(tmp_path / "out")) > 20 for job in jobs) and len(workers(process)) == 2)
        slow = workers(process)
        for worker in slow:
            worker.suspend()
        process.send_signal(number)
        stopping(process)
        time.sleep(5)  # as if a step took so long
        for worker in slow:
            worker.resume()
    finally:
        shown = ended(process)
    assert process.returncode == code and "go on with the same command" in shown, shown
    assert all(saved(job, tmp_path / "out") for job in jobs), shown


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    path = grid(tmp_path, losses='["margin"]', epochs=SLOW, checkpoint_every=1e9)
    [job] = grids.read(path).jobs
    process = bench(path, tmp_path / "out", "--workers", "1")
    try:
        until(lambda: steps(job.folder(tmp_path / "out")) > 20 and workers(process))
        workers(process)[0].suspend()  # it would never end by itself
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        stopping(process)
        time.sleep(TWICE)
        process.send_signal(signal.SIGINT)
    finally:
        shown = ended(process)
    assert process.returncode == 130 and time.monotonic() - begun < schedule.PATIENCE, shown


def test_an_address_where_nobody_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", str(grid(tmp_path)), "--out", str(tmp_path / "out"), "--executor", "ray"]
    assert main([*words, "--address", "127.0.0.1:1"]) == 2
    assert "address must be that of a Ray cluster that answers" in capsys.readouterr().err

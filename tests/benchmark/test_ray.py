"""The same on real Ray clusters: one that the benchmark starts, and one that is there already."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from nearkin import results
from nearkin.benchmark import grid as grids
from nearkin.benchmark import ray_cluster
from nearkin.cli import main
from nearkin.train.stop import TWICE
from tests.benchmark.grids import grid
from tests.benchmark.test_ahead import drawn
from tests.benchmark.test_ahead import grid as folders
from tests.benchmark.test_bench import ROOT, SLOW, ended, saved, steps, stopping
from tests.patience import PATIENCE, until

ray = pytest.importorskip("ray", reason="ray is not installed")


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
for name in ("RAY_AUTH_MODE", "RAY_ADDRESS"):  # left by what ran before in this process
    ENVIRONMENT.pop(name, None)


def bench(path: Path, out: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """A benchmark on Ray as ``start`` starts one."""
    command = [sys.executable, "-m", "tests.benchmark.patient", "bench", str(path), "--out", str(out)]
    return subprocess.Popen(
        [*command, "--executor", "ray", *words],
        env=ENVIRONMENT | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@dataclass
class Cluster:
    """A cluster that a test has started: its address, its folder and its token."""

    address: str
    folder: str
    token: str


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster as ``ray start --head`` makes it where there is a token, on a port and in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        found = Cluster(f"127.0.0.1:{port}", folder, secrets.token_hex(32))
        words = [
            "start", "--head", "--block", f"--port={port}", f"--temp-dir={folder}/ray", "--num-cpus=1",
            "--include-dashboard=false", "--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0",
            "--object-store-memory=80000000", "--disable-usage-stats",
        ]  # fmt: skip
        log = Path(folder) / "start.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", *words],
                env=ENVIRONMENT | {"RAY_AUTH_TOKEN": found.token}, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            until(lambda: "Ray runtime started" in log.read_text() or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield found
        finally:
            own = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.terminate()
            _, late = psutil.wait_procs([psutil.Process(process.pid), *own], timeout=PATIENCE)
            for each in late:
                with contextlib.suppress(psutil.Error):
                    each.kill()
            process.wait()


RATE = re.compile(r"seed 0: (\d+ %, [\d,]+ images/s)")
"""How far a run is, as the table on a terminal has it."""


class Shown:
    """What a program writes to a terminal."""

    def __init__(self, master: int) -> None:
        self.master, self.text = master, ""
        os.set_blocking(master, False)

    def read(self) -> str:
        """Everything since it began or was forgotten."""
        with contextlib.suppress(OSError):  # nothing new, or the program has ended
            while data := os.read(self.master, 65536):
                self.text += data.decode(errors="replace")
        return self.text

    def forget(self) -> None:
        self.read()
        self.text = ""


def name_of(process: psutil.Process) -> str:
    """What Ray calls a process of its own, or nothing where it has ended."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Processes of its cluster that are at a run."""
    return [child for child in psutil.Process(process.pid).children(recursive=True) if "ray::one_run" in name_of(child)]


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


def test_a_terminal_shows_how_far_runs_of_a_cluster_are(tmp_path: Path) -> None:
    """They tell an actor that is lost in the middle, begins again, and is told of what comes next."""
    path = grid(tmp_path, losses='["margin"]', epochs=SLOW)
    master, terminal = os.openpty()
    words = ["bench", str(path), "--out", str(tmp_path / "out"), "--executor", "ray", "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmark.patient", *words],
        env=ENVIRONMENT | {"TERM": "xterm", "COLUMNS": "150"}, stdin=terminal, stdout=terminal, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    shown = Shown(master)
    try:
        until(lambda: RATE.search(shown.read()))
        actors = [child for child in psutil.Process(process.pid).children(recursive=True) if "Board" in name_of(child)]
        assert len(actors) == 1
        actors[0].kill()
        psutil.wait_procs(actors, timeout=PATIENCE)
        shown.forget()
        until(lambda: len({found[1] for found in RATE.finditer(shown.read())}) > 1)
    finally:
        process.send_signal(signal.SIGINT)
        until(lambda: shown.read() is not None and process.poll() is not None)
        os.close(master)
    assert process.returncode == 130


def test_a_cluster_that_ends_leaves_all_runs_to_be_done(tmp_path: Path) -> None:
    path = grid(tmp_path, seeds="[0, 1, 2]", epochs=400)
    jobs, out = grids.read(path).jobs, tmp_path / "out"
    process = bench(path, out, "--workers", "1")
    try:
        until(lambda: steps(jobs[0].folder(out)) > 20 and workers(process))
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if child.name() == "raylet":
                    child.kill()
    finally:
        shown = ended(process)
    assert process.returncode == 2, shown
    assert "nearkin bench: the Ray cluster must stay there until all runs are done, got its end: " in shown, shown
    assert not any(job.failures(out) for job in jobs)
    # The worker that was at a run may have ended it; its line is there then, and no other.
    done = [job.id for job in jobs if job.finished(out)]
    assert len(done) <= 1 and list(results.known(out / results.FILE)) == done


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
        stopping(process)
        time.sleep(TWICE)
        process.send_signal(signal.SIGINT)
    finally:
        shown = ended(process)
    assert process.returncode == 130, shown


def test_a_cluster_that_is_there_already(tmp_path: Path, cluster: Cluster) -> None:
    """It wants its token, which Ray by itself does not send to an address. What is odd about images its runs tell."""
    drawn(tmp_path / "photos", 6)
    (tmp_path / "photos" / "kind0" / "1.png").write_bytes(b"no picture")
    path = folders(tmp_path, "photos")
    path.write_text(
        path.read_text().replace('["margin", "triplet"]', '["margin"]')
    )  # nothing more is read after its last words
    process = bench(path, tmp_path / "out", "--address", cluster.address, RAY_AUTH_TOKEN=cluster.token)
    shown = ended(process)
    assert process.returncode == 0 and "1 of 1 runs done" in shown, shown
    assert shown.count("note: photos: left out 1 image that cannot be read: ") == 1 and "kind0/1.png: " in shown


def test_a_cluster_that_refuses(tmp_path: Path, cluster: Cluster) -> None:
    path = grid(tmp_path, losses='["margin"]')
    shown = ended(bench(path, tmp_path / "out", "--address", cluster.address, RAY_AUTH_TOKEN="x" * 64))
    assert shown == f"nearkin bench: {ray_cluster.REFUSED.format(cluster.address)}\n"


def test_without_an_address_a_cluster_of_its_own_is_started(tmp_path: Path, cluster: Cluster) -> None:
    path = grid(tmp_path, losses='["margin"]')
    words = {"RAY_TMPDIR": cluster.folder, "RAY_AUTH_TOKEN": cluster.token}  # where Ray would find the other
    process = bench(path, tmp_path / "out", "--workers", "1", **words)
    shown = ended(process)
    assert process.returncode == 0 and "1 of 1 runs done" in shown, shown


def test_a_cluster_that_cannot_start_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**settings: object) -> None:
        raise RuntimeError("no room for the object store")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ValueError, match="^ray must be able to start here, got no room for the object store; try --ex"):
        ray_cluster._connect(ray, "", 1)


def test_the_token_goes_to_this_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"RAY_AUTH_TOKEN": "secret"})
    for address in ("192.0.2.77:6379", "ray://192.0.2.77:10001", "no.such.host.invalid:1"):
        ray_cluster._prepare(address)
        assert "RAY_AUTH_MODE" not in os.environ
    ray_cluster._prepare("localhost:6379")
    assert os.environ["RAY_AUTH_MODE"] == "token"
    os.environ["RAY_AUTH_MODE"] = "disabled"  # who has said it is right
    ray_cluster._prepare("127.0.0.1:6379")
    assert os.environ["RAY_AUTH_MODE"] == "disabled"


def test_an_address_where_nobody_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", str(grid(tmp_path)), "--out", str(tmp_path / "out"), "--executor", "ray"]
    assert main([*words, "--address", "127.0.0.1:1"]) == 2
    assert "address must be that of a Ray cluster that answers" in capsys.readouterr().err

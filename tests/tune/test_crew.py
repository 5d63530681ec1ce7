"""Several processes on one study."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nearkin.train import stop
from nearkin.tune import crew, files
from nearkin.tune.attempt import ABANDONED, DONE, Attempt
from nearkin.tune.show import Show
from nearkin.tune.worker import open_study, work
from tests.patience import PATIENCE
from tests.tune.stubs import install

ROOT = Path(__file__).parents[2]


class Seen(Show):
    def __init__(self) -> None:
        self.ends: list[Attempt] = []

    def ended(self, attempt: Attempt, counted: int, found: Attempt | None) -> None:
        self.ends.append(attempt)


def given(folder: Path, **changes: Any) -> dict[str, Any]:
    plain = {"data": "glyphs", "epochs": 3, "losses": "proxy_anchor,cosface", "trials": 5, "processes": 2}
    return {**plain, "study": str(folder / "study"), "pruner": "none", **changes}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "COMMAND", (sys.executable, "-m", "tests.tune.stub_worker"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def begun(folder: Path) -> list[list[str]]:
    path = folder / "begun.txt"
    return [line.split(" ", 2) for line in path.read_text().splitlines()] if path.exists() else []


def test_two_processes_never_run_the_same_trial(tmp_path: Path) -> None:
    asked = given(tmp_path, trials=12)
    (tmp_path / "patience.txt").write_text("0.2")  # or one would do all before the other has begun
    study, show = open_study(asked, "images"), Seen()
    crew.go(study, asked, 2, show)
    names, workers, settings = zip(*begun(tmp_path), strict=True)
    assert len(names) == len(set(names)) == 24 and len(set(workers)) == 2
    for loss in ("proxy_anchor", "cosface"):
        assert len(study.counted(loss)) == 12
        own = [entry for name, entry in zip(names, settings, strict=True) if name.startswith(loss)]
        assert len(set(own)) == 12  # no setting twice
    assert sorted(entry.name for entry in show.ends) == sorted(names)
    assert len(files.read(tmp_path / "study" / files.TRIALS)) == 24
    assert not list(study.workers.iterdir())


def test_a_killed_process_is_replaced_and_a_stopped_study_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 in the middle of a trial; later Ctrl-C; then the rest: every loss still gets its trials, none twice."""
    asked = given(tmp_path)
    study, show = open_study(asked, "images"), Seen()
    (tmp_path / "patience.txt").write_text("0.3")

    def trouble() -> None:
        while len(begun(tmp_path)) < 3:
            time.sleep(0.01)
        os.kill(int(begun(tmp_path)[2][1]), signal.SIGKILL)
        while len(begun(tmp_path)) < 6:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=trouble).start()
    with pytest.raises(KeyboardInterrupt):
        crew.go(study, asked, 2, show)
    killed = [entry for loss in study.plans for entry in study.attempts(loss) if entry.status == ABANDONED]
    assert "its process died by signal 9" in [entry.reason for entry in killed]
    assert not any(len(study.counted(loss)) >= 5 for loss in study.plans)
    install(monkeypatch, lambda settings: 0.5)
    with study:
        work(study, show)  # one process does for the rest
    for loss in study.plans:
        counted = study.counted(loss)
        assert [entry.status for entry in counted] == [DONE] * 5 and len({entry.key for entry in counted}) == 5
    lines = files.read(tmp_path / "study" / files.TRIALS)
    assert sum(line["status"] == DONE for line in lines) == 10
    assert {line["again"] for line in lines if line["status"] == DONE} - {None} == {entry.number for entry in killed}


def test_another_ctrl_c_ends_all_processes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that would never end by themselves."""
    script = "import time\nwhile True: time.sleep(1)"
    monkeypatch.setattr(crew, "COMMAND", (sys.executable, "-c", script))
    monkeypatch.setattr(stop, "TWICE", 0.0)
    monkeypatch.setattr(crew, "PATIENCE", 2 * PATIENCE)
    asked = given(tmp_path)
    study, begun = open_study(asked, "images"), time.monotonic()

    def impatient() -> None:
        for _ in range(2):
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=impatient).start()
    with pytest.raises(KeyboardInterrupt):
        crew.go(study, asked, 4, Seen())
    assert time.monotonic() - begun < PATIENCE


def test_a_process_that_was_gone_before_it_was_told_what_to_do(tmp_path: Path) -> None:
    found = crew._Crew(open_study(given(tmp_path), "images"), given(tmp_path), Seen())
    process = subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE)
    process.wait()
    assert process.stdin is not None
    process.stdin.write(b"never read")  # and still to be sent when the pipe is closed
    found.workers[0] = crew.Worker("gone", process, tmp_path / "gone.log")
    found.stop()


def test_sigterm_stops_a_crew(tmp_path: Path) -> None:
    asked = given(tmp_path)
    study = open_study(asked, "images")
    (tmp_path / "patience.txt").write_text("0.3")

    def terminate() -> None:
        while not begun(tmp_path):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=terminate).start()
    with pytest.raises(stop.Terminated):
        crew.go(study, asked, 2, Seen())


def test_a_process_that_cannot_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "COMMAND", (sys.executable, "-c", "raise SystemExit('no torch here')"))
    asked = given(tmp_path)
    with pytest.raises(ValueError, match="must come to a trial, got its end with code 1 before \\(no torch here\\)"):
        crew.go(open_study(asked, "images"), asked, 2, Seen())


def test_a_mistake_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; sys.stderr.write('noise\\nthe disk is full; free some space.\\n'); sys.exit(2)"
    monkeypatch.setattr(crew, "COMMAND", (sys.executable, "-c", script))
    asked = given(tmp_path)
    with pytest.raises(ValueError, match="^the disk is full; free some space.$"):
        crew.go(open_study(asked, "images"), asked, 2, Seen())


def test_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "cores", lambda: 8)
    assert crew.placed({"device": "cpu", "processes": 3}, 0) == {"threads": 2}
    assert crew.placed({"device": "cpu", "processes": 3, "threads": 5}, 0) == {}
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert [crew.placed({}, place)["device"] for place in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]

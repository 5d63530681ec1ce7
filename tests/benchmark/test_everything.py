"""What is measured on a lent device goes on where it was stopped, and nothing that was measured is lost."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nearkin import results
from nearkin.cli import main
from tests.benchmark.grids import grid
from tests.benchmark.scripts import script

WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"


@pytest.fixture
def everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = script("everything")
    monkeypatch.setattr(found, "ROOT", tmp_path)
    monkeypatch.setattr(found, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(found, "GRACE", 0.5)
    monkeypatch.setattr(found, "commit", lambda: "abc")
    return found


def writing(everything: ModuleType, folder: Path, text: str, name: str = "one.json", then: str = "") -> object:
    command = [sys.executable, "-c", f"{WRITE}; print('said'); {then}", str(folder / "results" / name), text]
    return everything.Step(command, name, 0.2)


def test_steps_are_done_once_at_a_commit(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    assert everything.work({"first": writing(everything, tmp_path, "1")}, kept, 60) == []
    assert (kept / "one.json").read_text() == "1" and (kept / "first.log").read_text() == "said\n"
    assert everything.work({"first": writing(everything, tmp_path, "2")}, kept, 60) == []
    assert (kept / "one.json").read_text() == "1"
    monkeypatch.setattr(everything, "commit", lambda: "abd")
    assert everything.work({"first": writing(everything, tmp_path, "3")}, kept, 60) == []
    assert (kept / "one.json").read_text() == "3"


def test_a_step_that_fails_or_outlasts_the_time_keeps_what_it_has(everything: ModuleType, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    found = {
        "fails": writing(everything, tmp_path, "1", then="sys.exit(3)"),
        "lasts": writing(everything, tmp_path, "2", "two.json", then="import time; time.sleep(600)"),
        "late": writing(everything, tmp_path, "3", "three.json"),
    }
    assert everything.work(found, kept, 6) == ["fails", "lasts", "late"]
    assert (kept / "one.json").read_text() == "1" and (kept / "two.json").read_text() == "2"
    assert not (kept / "three.json").exists() and not (kept / everything.DONE).exists()
    assert everything.work({"late": found["late"]}, kept, 60) == []


def test_results_of_before_are_there_when_a_step_goes_on(everything: ModuleType, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "one.json").write_text("[1]")
    more = "import sys, pathlib; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text()[:-1] + ', 2]')"
    step = everything.Step([sys.executable, "-c", more, str(tmp_path / "results" / "one.json")], "one.json", 0.2)
    assert everything.work({"first": step}, kept, 60) == []
    assert (kept / "one.json").read_text() == "[1, 2]"
    (tmp_path / "results" / "one.json").write_text("[0]")  # as in a fresh checkout
    assert everything.work({"first": step}, kept, 60) == []
    assert (tmp_path / "results" / "one.json").read_text() == "[1, 2]"


def test_what_cannot_be_read_is_put_aside(everything: ModuleType, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for name, text in (("one.json", "[1"), (everything.DONE, "{"), ("runs.tar.xz", "no archive")):
        (kept / name).write_text(text)
    found = {
        "first": writing(everything, tmp_path, "[3]"),
        "runs": everything.Step(["true"], "runs.tar.xz", 0.2, "bench"),
    }
    assert everything.work(found, kept, 60) == []
    assert (kept / "one.json").read_text() == "[3]" and (kept / "one.json.damaged").read_text() == "[1"
    assert (kept / "runs.tar.xz.damaged").read_text() == "no archive"


@pytest.mark.parametrize("now", ["unknown", "abc*"])
def test_a_commit_that_says_little_is_measured_again(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: str
) -> None:
    monkeypatch.setattr(everything, "commit", lambda: now)
    for text in ("1", "2"):
        assert everything.work({"first": writing(everything, tmp_path, text)}, tmp_path / "kept", 60) == []
        assert (tmp_path / "kept" / "one.json").read_text() == text


def test_runs_that_were_packed_are_not_done_again(everything: ModuleType, tmp_path: Path) -> None:
    """Though the machine they were done on is gone, with its checkpoints."""
    kept, path = tmp_path / "kept", grid(tmp_path, seeds="[0, 1]", head="keep_checkpoints = false", audit=True)
    words = ["bench", str(path), "--out", str(tmp_path / "bench")]
    (tmp_path / "packs").mkdir()
    changes = {"audit": True, "packs": str(tmp_path / "packs")}
    one = grid(tmp_path / "packs", seeds="[0]", head="keep_checkpoints = false", **changes)
    assert main(["bench", str(one), "--out", str(tmp_path / "bench")]) == 0
    before = {run.id: run for run in results.read(tmp_path / "bench")}
    assert len(before) == 2
    step = everything.Step([sys.executable, "-m", "nearkin", *words], "runs.tar.xz", 0.2, "bench")
    kept.mkdir()
    everything.bring(step, kept)
    shutil.rmtree(tmp_path / "bench")
    everything.fetch(step, kept)
    assert main(words) == 0
    after = {run.id: run for run in results.read(tmp_path / "bench")}
    assert len(after) == 4
    for name, run in before.items():
        assert after[name].metrics == run.metrics and after[name].cost == run.cost and after[name].where == run.where
    everything.bring(step, kept)
    file = tmp_path / "bench" / "results.jsonl"  # a machine that has done fewer of them by itself
    file.write_text("".join(file.read_text().splitlines(True)[:2]))
    for name in after.keys() - before.keys():
        shutil.rmtree(tmp_path / "bench" / "runs" / name)
    everything.fetch(step, kept)
    everything.bring(step, kept)
    shutil.rmtree(tmp_path / "bench")
    everything.fetch(step, kept)
    assert {run.id: run.metrics for run in results.read(tmp_path / "bench")} == {
        name: run.metrics for name, run in after.items()
    }
    assert len(list((tmp_path / "bench" / "runs").iterdir())) == 4
    assert not json.loads((tmp_path / "bench" / "results.jsonl").read_text().splitlines()[0])["error"]


def test_every_command_is_one_that_is_there() -> None:
    everything = script("everything")
    found = everything.steps("cub", "weights.safetensors", '{"stride": "1x1", "mean": [0.5]}', 3)
    assert [*everything.steps("", "", "{}", 3)] == [*found][:7]  # what needs no data
    for name, step in found.items():
        if step.grid:
            assert step.command[1:4] == ["-m", "nearkin", "bench"] and name in everything.GRIDS
            assert step.command[-1] == 'network_settings={stride = "1x1", mean = [0.5]}'
        else:
            assert Path(step.command[1]).exists(), name

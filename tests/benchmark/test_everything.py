"""What is measured on a lent device goes on where it was stopped, and nothing that was measured is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from nearkin import results
from nearkin.cli import main
from tests.benchmark.grids import grid
from tests.benchmark.scripts import ROOT, script
from tests.patience import PATIENCE, until

WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"
FILES = 8
"""What comes back from a lent device at most."""


@pytest.fixture
def everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = script("everything")
    for module in (found, sys.modules["everything_kept"]):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(found, "GRACE", 0.5)
    monkeypatch.setattr(found, "commit", lambda: "abc")
    return found


def writing(everything: ModuleType, folder: Path, text: str, name: str = "one.json", then: str = "") -> Any:
    command = [
        sys.executable,
        "-c",
        f"{WRITE}; print('said', flush=True); {then}",
        str(folder / "results" / name),
        text,
    ]
    return everything.Step(command, name, 0.2, packing=0)


def work(everything: ModuleType, folder: Path, found: dict[str, Any], seconds: float = 60) -> Any:
    """As a device does it that is new each time: only what was kept is there."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    outcome = everything.work(found, everything.Kept(folder / "kept"), seconds)
    assert len(list((folder / "kept").iterdir())) <= FILES
    return outcome


def kept(everything: ModuleType, folder: Path) -> dict[str, str]:
    found = everything.Kept(folder / "kept").files
    return {name: text.decode() for name, text in found.items()}


def test_steps_are_done_once_at_a_commit(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, commit, expected in (("1", "abc", "1"), ("2", "abc", "1"), ("3", "abd", "3")):
        monkeypatch.setattr(everything, "commit", lambda commit=commit: commit)
        outcome = work(everything, tmp_path, {"first": writing(everything, tmp_path, text)})
        assert not outcome.left and not outcome.failed
        assert kept(everything, tmp_path)["results/one.json"] == expected
        assert (tmp_path / "results" / "one.json").read_text() == expected
    assert kept(everything, tmp_path)["logs/first.log"] == "said\nsaid\n"
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["kept.tar.xz"]


def test_a_step_that_breaks_or_outlasts_the_time_keeps_what_it_has(everything: ModuleType, tmp_path: Path) -> None:
    found = {
        "breaks": writing(everything, tmp_path, "1", then="sys.exit(1)"),
        "lasts": writing(everything, tmp_path, "2", "two.json", then="import time; time.sleep(600)"),
        "late": writing(everything, tmp_path, "3", "three.json"),
    }
    outcome = work(everything, tmp_path, found, 6)
    assert [*outcome.left] == ["breaks", "lasts", "late"] and not outcome.failed
    here = kept(everything, tmp_path)
    assert here["results/one.json"] == "1" and here["results/two.json"] == "2" and "results/three.json" not in here
    assert not work(everything, tmp_path, {"late": found["late"]}).left


def test_what_hangs_is_stopped_at_its_own_limit_with_all_it_started_and_comes_last_next_time(
    everything: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    child = f"import subprocess; print(subprocess.Popen([sys.executable, '-c', {deaf!r}]).pid, flush=True); {deaf}"
    hangs = writing(everything, tmp_path, "1", then=child)
    found = {"hangs": replace(hangs, most=8), "quick": writing(everything, tmp_path, "2", "two.json")}
    begun = time.monotonic()
    assert [*work(everything, tmp_path, found, 120).left] == ["hangs"]
    assert time.monotonic() - begun < 60 and kept(everything, tmp_path)["results/two.json"] == "2"
    started = int(kept(everything, tmp_path)["logs/hangs.log"].split()[1])
    until(lambda: not psutil.pid_exists(started) or psutil.Process(started).status() == psutil.STATUS_ZOMBIE)
    found |= {"hangs": writing(everything, tmp_path, "1"), "third": writing(everything, tmp_path, "3", "three.json")}
    capsys.readouterr()
    work(everything, tmp_path, found, 120)
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["quick", "third", "hangs"]


def test_runs_take_no_time_from_what_broke_off(everything: ModuleType, tmp_path: Path) -> None:
    place, found = everything.Kept(tmp_path / "kept"), everything.steps("cub", "weights", "{}", 3)
    for name in ("exact", "tests", "birds"):
        place.note(name, everything.Record("abc", broke=True))
    names = [name for name in found if name not in ("exact", "tests", "birds", "ablations", "folds")]
    assert everything.ordered(found, place, "abc") == [*names, "exact", "tests", "ablations", "folds", "birds"]
    assert everything.ordered(found, place, "abd") == [*found]


def test_what_came_to_its_end_with_failures_is_done_and_told_of(everything: ModuleType, tmp_path: Path) -> None:
    code = everything.steps("", "", "{}", 1)["tests"].failed
    found = {"first": writing(everything, tmp_path, "1", then=f"sys.exit({code})")}
    for _ in range(2):  # said each time, done once
        outcome = work(everything, tmp_path, found)
        assert not outcome.left and outcome.failed == ["first"]
        assert kept(everything, tmp_path)["logs/first.log"] == "said\n"


def test_a_result_that_is_missing_or_lacks_a_part_is_measured_again(everything: ModuleType, tmp_path: Path) -> None:
    first = replace(writing(everything, tmp_path, '{"a": 1}'), parts=("a",))
    assert not work(everything, tmp_path, {"first": first}).left
    place = everything.Kept(tmp_path / "kept")
    for damage in (
        lambda: place.files.pop("results/one.json"),
        lambda: place.files.update({"results/one.json": b"{}"}),
    ):
        damage()
        place.save()
        assert not everything.Kept(tmp_path / "kept").done("first", first, "abc")
        assert not work(everything, tmp_path, {"first": first}).left
        assert kept(everything, tmp_path)["results/one.json"] == '{"a": 1}'
    assert [*work(everything, tmp_path, {"second": replace(first, parts=("a", "b"))}).left] == ["second"]


def test_what_a_step_has_is_saved_while_it_works(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device may be gone before anybody can be told to stop."""
    monkeypatch.setattr(everything, "SAVED", 0.2)
    seen: list[str] = []

    class Watched(everything.Kept):  # type: ignore[name-defined,misc]
        def save(self) -> None:
            super().save()
            seen.append(kept(everything, tmp_path).get("results/one.json", ""))

    step = writing(everything, tmp_path, "1", then="import time; time.sleep(600)")
    everything.work({"first": step}, Watched(tmp_path / "kept"), 5)
    assert seen[0] in ("", "1") and seen.count("1") > 2


def test_results_of_before_are_there_when_a_step_goes_on(everything: ModuleType, tmp_path: Path) -> None:
    more = "import sys, pathlib; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text()[:-1] + ', 2]')"
    whole = writing(everything, tmp_path, "[1]", then="sys.exit(1)")
    command = [sys.executable, "-c", more, str(tmp_path / "results" / "one.json")]
    assert [*work(everything, tmp_path, {"first": whole}).left] == ["first"]
    assert not work(everything, tmp_path, {"first": replace(whole, command=command)}).left
    assert kept(everything, tmp_path)["results/one.json"] == "[1, 2]"


def test_what_cannot_be_read_is_put_aside(everything: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for name, text in (("kept.tar.xz", "torn"), ("runs.tar.xz", "no archive"), ("runs.tar.xz.part", "half")):
        (tmp_path / "kept" / name).write_text(text)
    found = {
        "first": writing(everything, tmp_path, "[3]"),
        "runs": everything.Step(["true"], "runs.tar.xz", 0.2, grid="bench"),
    }
    assert [*work(everything, tmp_path, found).left] == ["runs"]  # of which there are none
    assert kept(everything, tmp_path)["results/one.json"] == "[3]"
    assert (tmp_path / "kept" / "kept.tar.xz.damaged").read_text() == "torn"
    assert (tmp_path / "kept" / "runs.tar.xz.damaged").read_text() == "no archive"
    assert not (tmp_path / "kept" / "runs.tar.xz.part").exists()


def test_a_torn_result_does_not_take_the_place_of_a_whole_one(everything: ModuleType, tmp_path: Path) -> None:
    step = writing(everything, tmp_path, "[1]", then="sys.exit(1)")
    work(everything, tmp_path, {"first": step})
    work(everything, tmp_path, {"first": replace(step, command=[*step.command[:-1], "[1"])})
    assert kept(everything, tmp_path)["results/one.json"] == "[1]"


def test_files_that_differ_from_their_commit_are_measured_again(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everything, "commit", lambda: "abc*")
    for text in ("1", "2"):
        assert not work(everything, tmp_path, {"first": writing(everything, tmp_path, text)}).left
        assert kept(everything, tmp_path)["results/one.json"] == text


def test_what_is_left_is_estimated(everything: ModuleType) -> None:
    step, record = everything.Step([], "", 60), everything.Record("abc")
    assert everything.remaining(step, record) == (60, "at least 60 s")
    assert everything.remaining(step, replace(record, took=300, seconds=100)) == (200, "about 200 s")
    assert everything.remaining(step, replace(record, took=300, seconds=290)) == (60, "about 60 s")
    assert everything.remaining(step, replace(record, seconds=90, runs=3, left=7)) == (210, "about 210 s for 7 runs")


def run(folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    """The script as a copy that lies in a folder without git."""
    for name in ("benchmarks", "nearkin"):
        if not (folder / name).exists():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("results", "__pycache__"))
    command = [sys.executable, str(folder / "benchmarks" / "everything.py"), "--kept", str(folder / "kept"), *words]
    given = (
        {key: value for key, value in os.environ.items() if key != "COMMIT"} | {"PYTHONPATH": str(folder)} | environment
    )
    done = subprocess.run(command, env=given, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_measured_of_which_nobody_knows_the_commit(tmp_path: Path) -> None:
    code, said = run(tmp_path)
    assert code == 2 and "error: the commit must be known, or nobody can say what was measured, got a folder" in said
    assert "give --commit with what git rev-parse --short HEAD says where these files come from." in said
    for words, environment in ((["--commit", "abc1234"], {}), ([], {"COMMIT": "abc1234"})):
        assert "the commit must be known" not in run(tmp_path, *words, **environment)[1]
    code, said = run(tmp_path, "--commit", "abc1234", "--steps", "engines")
    assert (
        code == 2 and "engines is no step here; there are engine, exact, million, huge, tests, sizes, profile;" in said
    )


def test_what_is_kept_is_taken_into_the_results(tmp_path: Path, everything: ModuleType) -> None:
    place = everything.Kept(tmp_path / "kept")
    place.files = {
        "results/engine-cuda.json": b'{"large": 1}',
        "results/gpu-tests.json": b'{"whole": false}',
    }
    packed = {name: tmp_path / "kept" / f"{name}.tar.xz" for name in ("birds", "folds")}
    for name, path in packed.items():
        path.write_text(name)
        digest = sys.modules["everything_kept"]._digest(path)
        place.note(name, everything.Record("abc1234", ended=name == "birds", digest=digest))
    place.save()
    code, said = run(tmp_path, "--take")
    assert code == 0, said
    into = tmp_path / "benchmarks" / "results"
    assert {path.name for path in into.iterdir()} == {"engine-cuda.json", "birds.tar.xz"}
    assert "folds.tar.xz: not whole yet" in said and "gpu-tests.json: not whole" in said


def test_ctrl_c_lets_a_step_save(everything: ModuleType, tmp_path: Path) -> None:
    waits = f"try:\n    {WRITE}; import time; time.sleep(600)\nexcept KeyboardInterrupt:\n"
    waits += "    pathlib.Path(sys.argv[1]).write_text('[2]')"
    file = tmp_path / "results" / "one.json"
    step = everything.Step([sys.executable, "-c", waits, str(file), "[1]"], "one.json", 0.2)
    everything.GRACE = PATIENCE

    def interrupt() -> None:
        until(file.exists)
        os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)  # what the runner of tests does not listen to
    person = threading.Thread(target=interrupt)
    person.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            everything.work({"first": step}, everything.Kept(tmp_path / "kept"), 4 * PATIENCE)
    finally:
        person.join()
        signal.signal(signal.SIGALRM, before)
    assert kept(everything, tmp_path)["results/one.json"] == "[2]"


def test_runs_that_were_packed_are_not_done_again(everything: ModuleType, tmp_path: Path) -> None:
    """Though the machine they were done on is gone, with its checkpoints."""
    path = grid(tmp_path, seeds="[0, 1]", head="keep_checkpoints = false", audit=True)
    words = ["bench", str(path), "--out", str(tmp_path / "bench")]
    (tmp_path / "packs").mkdir()
    changes = {"audit": True, "packs": str(tmp_path / "packs")}
    one = grid(tmp_path / "packs", seeds="[0]", head="keep_checkpoints = false", **changes)
    assert main(["bench", str(one), "--out", str(tmp_path / "bench")]) == 0
    before = {run.id: run for run in results.read(tmp_path / "bench")}
    assert len(before) == 2
    step = everything.Step([sys.executable, "-m", "nearkin", *words], "runs.tar.xz", 0.2, grid="bench", failed=1)
    place = everything.Kept(tmp_path / "kept")
    place.note("runs", everything.Record())
    place.pack("runs", step)
    shutil.rmtree(tmp_path / "bench")
    outcome = everything.work({"runs": step}, place, 600)
    assert not outcome.left and not outcome.failed
    assert place.done("runs", step, "abc") and place.records["runs"].runs == 2 and not place.records["runs"].left
    after = {run.id: run for run in results.read(tmp_path / "bench")}
    assert len(after) == 4
    for name, run in before.items():
        assert after[name].metrics == run.metrics and after[name].cost == run.cost and after[name].where == run.where
    file = tmp_path / "bench" / "results.jsonl"  # a machine that has done fewer of them by itself
    file.write_text("".join(file.read_text().splitlines(True)[:2]))
    for name in after.keys() - before.keys():
        shutil.rmtree(tmp_path / "bench" / "runs" / name)
    place.fetch(step)
    place.pack("runs", step)
    shutil.rmtree(tmp_path / "bench")
    place.fetch(step)
    assert {run.id: run.metrics for run in results.read(tmp_path / "bench")} == {
        name: run.metrics for name, run in after.items()
    }
    assert len(list((tmp_path / "bench" / "runs").iterdir())) == 4
    assert not json.loads((tmp_path / "bench" / "results.jsonl").read_text().splitlines()[0])["error"]


def test_a_packed_file_that_did_not_come_back_is_made_again(everything: ModuleType, tmp_path: Path) -> None:
    path = grid(tmp_path, losses='["margin"]', head="keep_checkpoints = false")
    words = [sys.executable, "-m", "nearkin", "bench", str(path), "--out", str(tmp_path / "bench")]
    environment = f"import os, sys; os.environ['PYTHONPATH'] = {str(ROOT)!r}; os.execv(sys.executable, {words!r})"
    step = everything.Step([sys.executable, "-c", environment], "runs.tar.xz", 0.2, grid="bench", failed=1)
    for damage in (None, "gone", "another"):
        if damage:
            (tmp_path / "kept" / "runs.tar.xz").unlink()
        if damage == "another":
            (tmp_path / "kept" / "runs.tar.xz").write_text("of another run")
        assert everything.Kept(tmp_path / "kept").done("runs", step, "abc") is False
        assert not work(everything, tmp_path, {"runs": step}, 600).left
        assert everything.Kept(tmp_path / "kept").done("runs", step, "abc")
    (tmp_path / "kept" / "runs.tar.xz.damaged").unlink()


def test_every_command_is_one_that_is_there() -> None:
    everything = script("everything")
    found = everything.steps("cub", "weights.safetensors", '{"stride": "1x1", "mean": [0.5]}', 3)
    first, train, last = ["engine", "exact", "million", "huge"], "training", ["tests", "sizes", "profile"]
    parts = [f"{train}_{part}" for part in ("reach", "share", "cached", "profile")]
    assert [*found] == [*first, *parts, *last, "birds", "ablations", "folds"]
    assert [*everything.steps("", "", "{}", 3)] == [*first, *last]  # what needs no data
    assert [*everything.chosen(found, ["tests", "training"])] == ["tests", *parts]
    with pytest.raises(ValueError, match="^test$"):
        everything.chosen(found, ["test"])
    for name, step in found.items():
        if step.grid:
            assert step.command[1:4] == ["-m", "nearkin", "bench"] and step.failed == 1
            assert step.command[-1] == 'network_settings={stride = "1x1", mean = [0.5]}'
        else:
            assert Path(step.command[1]).exists() and step.command[-1] == "--go-on", name
            assert step.least <= step.most <= 300 and step.parts, name
    packed = {step.result for step in found.values() if step.grid}
    assert all((ROOT / "benchmarks" / "results" / name).exists() for name in packed)
    # Even with what could not be read put aside as many files as come back.
    assert 2 * (len(packed) + 1) <= FILES


def test_every_part_of_a_result_is_a_step_s() -> None:
    found = script("everything").steps("cub", "weights", "{}", 3)
    parts = {result: set() for result in ("engine-cuda.json", "training-cuda.json")}
    for step in found.values():
        if step.result in parts:
            parts[step.result] |= set(step.parts)
    assert parts["engine-cuda.json"] == set(script("engine").PARTS)
    assert parts["training-cuda.json"] == set(script("training").MEASURES)


def test_what_a_step_lacks_is_told_before_any_time_is_used(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = replace(writing(everything, tmp_path, "1"), needs=("json", "no_such_module"))
    assert step.lacks() == ["no_such_module"]
    monkeypatch.setattr(everything, "steps", lambda *_: {"one": step, "two": writing(everything, tmp_path, "2")})
    monkeypatch.setattr(everything.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(sys, "argv", ["everything.py", "--kept", str(tmp_path / "kept")])
    with pytest.raises(SystemExit) as stopped:
        everything.main()
    assert stopped.value.code == 2 and not (tmp_path / "results").exists()
    assert "one needs no_such_module, which this Python lacks; bring it, or leave one out" in capsys.readouterr().err

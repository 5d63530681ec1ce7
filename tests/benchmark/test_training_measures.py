"""What training costs on a GPU: compiling is told of where it was done, parts are not measured twice."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from tests.benchmark.scripts import script

NOW = {"commit": "abc", "device": "D"}


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with nothing to train: a clock that a step of training moves on."""
    found = script("training")
    found.ended = {}
    clock = SimpleNamespace(now=0.0, taken=[30.0, 12.0, 1.0])

    def train(settings: Any) -> dict[str, float]:
        clock.now += clock.taken.pop(0)
        Path(settings.out).mkdir(parents=True, exist_ok=True)
        log = [
            {"kind": "epoch", "epoch": 0, "seconds": 2.5},
            {"kind": "evaluate", "epoch": 0, "recall@1": 0.7},
        ]
        (Path(settings.out) / "log.jsonl").write_text("\n".join(map(json.dumps, log)))
        return found.ended

    monkeypatch.setattr("nearkin.train.loop.train", train)
    monkeypatch.setattr(found, "settled", lambda options, folder, **changes: SimpleNamespace(out=f"{folder}/run"))
    monkeypatch.setattr(found.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(torch, "zeros", lambda *given, **more: None)
    monkeypatch.setattr(sys.modules["harness"], "RESULTS", tmp_path)
    monkeypatch.setattr(found, "RESULTS", tmp_path)
    monkeypatch.setattr(found, "conditions", lambda: NOW)
    return found


@pytest.mark.parametrize("left", [None, "kernel", "nowhere"])
def test_compiling_has_a_figure_only_where_nothing_was_compiled_before(
    training: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str | None
) -> None:
    for name in training.CACHES:
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    if left == "kernel":
        (tmp_path / training.CACHES[0] / left).write_text("compiled")
    elif left:
        monkeypatch.delenv(training.CACHES[1])
    found = training.reach(argparse.Namespace())
    assert found["seconds"] == 2.5 and found["epoch"] == 0
    assert found.get("compilation") == (None if left else 18.0)


@pytest.mark.parametrize("ended", [{}, {"recording_seconds": 1.25}])
def test_recording_has_a_figure_where_it_was_done(training: ModuleType, ended: dict[str, float]) -> None:
    training.ended = ended  # type: ignore[attr-defined]
    assert training.reach(argparse.Namespace()).get("recording") == ended.get("recording_seconds")


def test_reach_has_a_process_and_caches_of_its_own(training: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def run(words: list[str], env: dict[str, str], check: bool) -> None:
        with monkeypatch.context() as changed:
            for name in training.CACHES:
                changed.setenv(name, env[name])
            seen.extend([training.cold(), env["PATH"] == os.environ["PATH"], words[1:-1]])
        Path(words[-1]).write_text('{"goal": 0.67}')

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["training.py", "--root", "cub"])
    assert training.reach_alone(argparse.Namespace()) == {"goal": 0.67}
    assert seen == [True, True, [training.__file__, "--root", "cub", "--reach-into"]]


def test_parts_of_this_commit_are_not_measured_again_and_a_failing_one_costs_no_other(
    training: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []

    def part(name: str) -> Any:
        def measure(options: argparse.Namespace) -> dict[str, Any]:
            done.append(name)
            if name == "share":
                raise RuntimeError("no room")
            return {"name": name}

        return measure

    old = {"cached": {"conditions": NOW, "name": "old"}, "profile": {"conditions": NOW | {"commit": "older"}}}
    (tmp_path / training.RESULT).write_text(json.dumps(old))
    monkeypatch.setattr(training, "MEASURES", {name: part(name) for name in training.MEASURES})
    monkeypatch.setattr(training, "pack", lambda options: done.append("pack"))
    monkeypatch.setattr(sys, "argv", ["training.py", "--root", "cub", "--weights", "w", "--go-on"])
    with pytest.raises(SystemExit) as end:
        training.main()
    assert end.value.code == sys.modules["harness"].ENDED and "not finished: share" in capsys.readouterr().out
    assert done == ["pack", "reach", "share", "profile"]
    found = json.loads((tmp_path / training.RESULT).read_text())
    assert found["cached"]["name"] == "old" and found["profile"] == {"conditions": NOW, "name": "profile"}


def test_the_page_has_the_time_of_recording_where_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    page = script("gpu_page")
    monkeypatch.setattr(page, "reach", lambda *given: None)
    monkeypatch.setattr(page, "measured", lambda part: "")
    part = {"goal": 0.67, "seconds": 3.9, "recall@1": [[3.9, 0.68]], "recording": 1.24}
    (text, *_) = page.training_page({"reach": part})
    recording = "recording the network's kernels (1.2 s)"
    assert f"; {recording}, measuring and what the parts before it had compiled are not counted" in text
    (text, *_) = page.training_page({"reach": part | {"compilation": 18.04}})
    compilation = "compilation (18.0 s, nothing being compiled before)"
    assert f"; {compilation}, {recording} and measuring are not counted" in text


def test_the_page_has_the_time_of_compiling_where_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    page = script("gpu_page")
    monkeypatch.setattr(page, "reach", lambda *given: None)
    monkeypatch.setattr(page, "measured", lambda part: "")
    part = {"goal": 0.67, "seconds": 3.9, "recall@1": [[3.9, 0.68]]}
    (text, *_) = page.training_page({"reach": part})
    assert "; measuring and what the parts before it had compiled are not counted" in text
    (text, *_) = page.training_page({"reach": part | {"compilation": 18.04}})
    assert "; compilation (18.0 s, nothing being compiled before) and measuring are not counted" in text

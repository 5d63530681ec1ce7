"""A benchmark that goes on on another kind of device says so before it does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nearkin import results
from nearkin.benchmark import grid as grids
from nearkin.benchmark import kinds
from nearkin.benchmark.grid import Grid
from nearkin.benchmark.job import METRICS
from nearkin.cli import main
from tests.benchmark.grids import grid


def begun(folder: Path, peak: dict[str, float], losses: int = 2, **changes: str) -> tuple[Grid, Path]:
    """A benchmark whose first runs are done, on a device of that much memory or on none."""
    read, out = grids.read(grid(folder, '["margin", "triplet", "contrastive"]', **changes)), folder / "out"
    for job in read.jobs[:losses]:
        job.save(out)
        job.note_where(out, {"device": "its name"})
        facts = {"validation": None, "test_feedback": None, "epoch": 1, "recall@1": 0.5, "seconds": 1.0, **peak}
        (job.folder(out) / METRICS).write_text(json.dumps(facts))
    return read, out


def test_going_on_without_the_gpu_is_said_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = begun(tmp_path, {"peak_bytes": 1e9})
    words = ["bench", str(tmp_path / "grid.toml"), "--out", str(out)]
    assert main(words) == 0
    said = (
        f"note: 2 finished runs in {out} were done on a GPU, what is left will be on a CPU, with precision auto in float32 "
        f"instead of bf16: what differs may be the device and not the loss; go on there, or give another folder with "
        f"--out.\n"
    )
    shown = capsys.readouterr().out
    assert shown.startswith(said) and shown.count("note:") == 1
    assert main(words) == 0
    assert "note:" not in capsys.readouterr().out  # nothing is left to do


def test_going_on_with_a_gpu_is_said_unless_the_runs_stay_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    own, out = begun(tmp_path, {}, device="auto")
    [note] = kinds.changed(own.jobs, out)
    assert "were done on a CPU, what is left will be on a GPU, with precision auto in bf16 instead" in note
    own, out = begun(tmp_path, {}, device="auto", precision="float32")
    [note] = kinds.changed(own.jobs, out)
    assert "will be on a GPU: what differs" in note
    own, out = begun(tmp_path, {}, device="cpu")
    assert kinds.changed(own.jobs, out) == []


def test_what_was_given_up_is_left_only_where_it_is_tried_again(tmp_path: Path) -> None:
    read, out = begun(tmp_path, {"peak_bytes": 1e9}, losses=1)
    for job in read.jobs[1:]:
        results.append(out / results.FILE, replace(job.result(out), error="no room"))
    assert kinds.changed(read.jobs, out) == []
    [note] = kinds.changed(read.jobs, out, retry=True)
    assert note.startswith(f"1 finished run in {out} was done on a GPU, what is left will be on a CPU, with")


def test_the_same_kind_and_other_experiments_are_nothing_to_tell_of(tmp_path: Path) -> None:
    own, out = begun(tmp_path, {})
    assert kinds.changed(own.jobs, out) == []
    one, out = begun(tmp_path, {"peak_bytes": 1e9}, losses=3)
    other = grids.read(tmp_path / "grid.toml", {"dim": [4]})
    assert kinds.changed([*one.jobs, *other.jobs], out) == []  # what is left is of another size

"""Another name for a data set makes new runs, and a benchmark says so before it starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearkin.benchmark import grid as grids
from nearkin.benchmark.job import FILE, METRICS
from nearkin.benchmark.renamed import renamed
from nearkin.cli import main
from tests.benchmark.grids import grid


def named(folder: Path, *labels: str, root: str = "") -> Path:
    """A grid of two losses whose data set is called so."""
    path = grid(folder)
    entries = [
        f'{{data = "glyphs", label = "{label}", data_settings = {{classes = 20, images = 6}}}}' for label in labels
    ]
    lines = [
        f"data = [{', '.join(entries)}]" if line.startswith("data = ") else line
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines) + (f'\nroot = "{root}"\n' if root else "\n"))
    return path


def done(path: Path, out: Path) -> None:
    """As if every run of the grid were finished."""
    for job in grids.read(path).jobs:
        job.save(out)
        (job.folder(out) / METRICS).write_text(
            '{"validation": null, "test_feedback": null, "epoch": 1, "recall@1": 0.5}'
        )


def test_a_new_name_is_told_of_before_its_runs_are_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    done(named(tmp_path, "letters"), out)
    words = ["bench", str(named(tmp_path, "signs")), "--out", str(out)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        f"note: 2 runs on 'signs' are finished as 'letters' in {out}, but the name of a data set is part of what runs are "
        f"known by; call it 'letters' again to repeat nothing.\n"
    )
    assert len(list((out / "runs").iterdir())) == 4
    for label in ("signs", "letters"):  # both are done by now
        assert main(["bench", str(named(tmp_path, label)), "--out", str(out)]) == 0
        assert "note:" not in capsys.readouterr().out
    assert len(list((out / "runs").iterdir())) == 4


def test_a_copy_beside_the_first_and_one_elsewhere_are_no_new_names(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done(named(tmp_path, "letters"), out)
    assert renamed(grids.read(named(tmp_path, "letters", "signs")).jobs, out) == []
    assert renamed(grids.read(named(tmp_path, "signs", root="cropped")).jobs, out) == []
    assert len(renamed(grids.read(named(tmp_path, "signs")).jobs, out)) == 1
    for place in (out / "runs").glob(f"*/{FILE}"):
        place.write_text("{")
    assert renamed(grids.read(named(tmp_path, "signs")).jobs, out) == []

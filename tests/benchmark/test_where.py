"""A result says on what it was made, and at which commit of nearkin, whatever repository it is installed in."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nearkin.benchmark import where as place
from nearkin.benchmark.where import commit_of, where
from nearkin.tournament.unlike import unlike
from tests.tournament.made import result

WHO = ("-c", "user.name=a", "-c", "user.email=a@b")
LISTED = (
    "processor\t: 0\nmodel name\t: Some Processor 9000 @ 3.2GHz\nprocessor\t: 1\nmodel name\t: Some Processor 9000\n"
)


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(place, "CPUS", file)
    return file


def test_a_processor_is_named_with_the_threads_of_the_run(listed: Path) -> None:
    listed.write_text(LISTED)
    assert where("cpu", threads=3)["device"] == "Some Processor 9000 @ 3.2GHz, 3 threads"
    assert where("cpu", threads=1)["device"].endswith(", 1 thread")
    assert where("cpu")["device"].endswith(f", {torch.get_num_threads()} thread{'s'[: torch.get_num_threads() > 1]}")


@pytest.mark.parametrize("content", [None, "processor\t: 0\nBogoMIPS\t: 50.00\n"])
def test_where_nothing_names_it_the_kind_of_processor_is_said(listed: Path, content: str | None) -> None:
    if content is not None:
        listed.write_text(content)
    assert where("cpu", threads=2)["device"] == f"{platform.processor() or platform.machine()}, 2 threads"


def test_results_that_have_only_the_kind_of_processor_are_of_no_other_kind_of_device() -> None:
    runs = [replace(result("margin"), where={"device": "x86_64"}), replace(result("triplet"), where=where("cpu"))]
    assert [run.device for run in runs] == ["CPU", "CPU"] and unlike(runs) == []


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *WHO, *words], check=True, capture_output=True, text=True).stdout


def test_a_file_that_git_does_not_keep_has_no_commit(tmp_path: Path) -> None:
    for name in ("kept/where.py", ".venv/where.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("pass")
    assert commit_of(tmp_path / "kept" / "where.py") == ""
    git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text(".venv")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")[:12]
    assert commit_of(tmp_path / "kept" / "where.py") == head
    assert commit_of(tmp_path / ".venv" / "where.py") == ""
    (tmp_path / "kept" / "where.py").write_text("changed")
    assert commit_of(tmp_path / "kept" / "where.py") == f"{head}*"

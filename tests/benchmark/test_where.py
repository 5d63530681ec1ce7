"""The commit of a run is that of nearkin, whatever repository it is installed in."""

from __future__ import annotations

import subprocess
from pathlib import Path

from nearkin.benchmark.where import commit_of

WHO = ("-c", "user.name=a", "-c", "user.email=a@b")


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

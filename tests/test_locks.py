"""Locks on files: one holder, who may share, and a system without them is told of in one sentence when one is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nearkin import locks
from nearkin.data import pack_folder


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first, second = locks.FileLock(tmp_path / "lock"), locks.FileLock(tmp_path / "lock")
    assert first.acquire() and not second.try_acquire() and second.file is None
    first.release()
    assert second.try_acquire()
    second.release()


def test_those_who_share_stand_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open("rb") as one, (tmp_path / "lock").open("rb") as two:
        assert locks.take(one, shared=True, wait=False) and locks.take(two, shared=True, wait=False)
        assert not locks.take(two, wait=False)


def test_a_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(ImportError) as caught, locks.held(tmp_path / "lock"):
        pass
    assert str(caught.value) == "locks on files must be as Linux and macOS have them, got none; use WSL."
    with pack_folder.lock(tmp_path) as held:  # which costs double work only
        assert not held


def test_what_needs_no_lock_goes_without() -> None:
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "import nearkin.benchmark.perform, nearkin.index, nearkin.index.command, nearkin.results, nearkin.tune.study"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)

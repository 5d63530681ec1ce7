"""What is read again from the folder of a run, whatever a crash or an editor did to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearkin.train.folder import RunFolder
from nearkin.train.judge import Auditor

LINES = b'{"kind": "epoch", "step": 1}\n5\n[]\n{"kind": "validate", "step": 2}\n{"kind": "ep'


def test_lines_that_are_no_records_are_left_out(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.records() == []
    folder.log_path.write_bytes(LINES)
    assert folder.records() == [{"kind": "epoch", "step": 1}, {"kind": "validate", "step": 2}]
    assert folder.records("epoch") == [{"kind": "epoch", "step": 1}]


def test_an_audit_goes_back_over_lines_that_are_no_records(tmp_path: Path) -> None:
    def never(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError

    audit = Auditor(never, tmp_path / "audit.jsonl", first=True)
    assert audit.open(0) == []
    (tmp_path / "audit.jsonl").write_bytes(LINES)
    audit.forget(1)
    assert (tmp_path / "audit.jsonl").read_bytes() == b'{"kind": "epoch", "step": 1}\n'
    assert audit.open(0) == [{"kind": "epoch", "step": 1}]

"""Evaluation of a million vectors: what is stopped or fails takes nothing with it that was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.benchmark.scripts import ROOT, script

WHERE = {"device": "D", "versions": {"torch": "2", "pytorch-metric-learning": "3"}, "command": "python million.py"}
OLD, NEW = ({**WHERE, "commit": commit, "date": commit} for commit in "ab")


@pytest.fixture
def million(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script in a folder with whole results of an earlier commit; a row says when it was measured."""
    found = script("million")
    rows = [{"rows": rows, "seconds": 0} for rows in sorted(found.SIZES)]
    before = {"conditions": OLD, "retrieval": rows, "clustering": [{"rows": 10**6, "seconds": 0}]}
    (tmp_path / found.RESULT).write_text(json.dumps(before))
    monkeypatch.setattr(found, "RESULTS", tmp_path)
    monkeypatch.setattr(sys.modules["harness"], "RESULTS", tmp_path)
    monkeypatch.setattr(found, "conditions", lambda: NEW)
    monkeypatch.setattr(sys, "argv", ["million.py", "--go-on"])
    return found


def measuring(found: ModuleType, monkeypatch: pytest.MonkeyPatch, stop: int = 0, wrong: int = 0) -> list[int]:
    """Let the script measure something quick; returns the sizes it was asked for."""
    asked: list[int] = []

    def measure(rows: int) -> dict[str, Any]:
        if rows == stop:
            raise KeyboardInterrupt
        asked.append(rows)
        if rows == wrong:
            raise RuntimeError("no room")
        return {"rows": rows, "seconds": len(asked)}

    parts = {"retrieval": (measure, found.SIZES), "clustering": (measure, found.SIZES[:1])}
    monkeypatch.setattr(found, "PARTS", parts)
    return asked


def content(found: ModuleType) -> dict[str, Any]:
    return dict(json.loads((found.RESULTS / found.RESULT).read_text()))


def test_what_is_stopped_keeps_every_row_and_goes_on(million: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    first = measuring(million, monkeypatch, stop=250_000)
    with pytest.raises(KeyboardInterrupt):
        million.main()
    found = content(million)
    assert first == [10**6, 500_000] and found["conditions"] == NEW
    assert [row["rows"] for row in found["retrieval"]] == sorted(million.SIZES)
    assert [row.get("conditions", NEW)["commit"] for row in found["retrieval"]] == ["a", "a", "a", "b", "b"]
    assert found["clustering"] == [{"rows": 10**6, "seconds": 0, "conditions": OLD}]
    asked = measuring(million, monkeypatch)
    million.main()
    assert asked == [250_000, 125_000, 62_500, 10**6]  # the last one is k-means
    found = content(million)
    assert [row["seconds"] for row in found["retrieval"]] == [3, 2, 1, 2, 1]
    assert not any("conditions" in row for part in ("retrieval", "clustering") for row in found[part])
    million.main()
    assert len(asked) == 4
    monkeypatch.setattr(sys, "argv", ["million.py"])
    million.main()
    assert len(asked) == 10


def test_a_size_that_fails_costs_no_other_and_is_told_of(
    million: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measuring(million, monkeypatch, wrong=10**6)
    with pytest.raises(SystemExit) as end:
        million.main()
    assert end.value.code == sys.modules["harness"].ENDED
    assert "not finished: retrieval of 1,000,000, clustering of 1,000,000" in capsys.readouterr().out
    assert [row["seconds"] for row in content(million)["retrieval"]] == [5, 4, 3, 2, 0]


def test_where_nothing_could_be_measured_the_fault_is_not_in_a_size(
    million: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(rows: int) -> dict[str, Any]:
        raise RuntimeError("no card")

    monkeypatch.setattr(million, "PARTS", dict.fromkeys(million.PARTS, (measure, million.SIZES)))
    before = content(million)
    with pytest.raises(SystemExit) as end:
        million.main()
    assert end.value.code == 1 and content(million) == before


def test_sizes_that_are_asked_for_are_not_saved(million: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before, asked = content(million), measuring(million, monkeypatch)
    monkeypatch.setattr(sys, "argv", ["million.py", "--rows", "1000"])
    million.main()
    assert asked == [1000, 1000] and content(million) == before


def test_the_page_names_rows_of_earlier_commits_and_the_headline_is_of_a_million(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = script("gpu_page")
    monkeypatch.setattr(page, "growth", lambda *given: None)
    found = json.loads((ROOT / "benchmarks" / "results" / "evaluation-cuda.json").read_text())
    engine = json.loads((ROOT / "benchmarks" / "results" / "engine-cuda.json").read_text())
    assert page.headline(engine, found).endswith("1,000,000 vectors in 1.8 s")
    found["conditions"], before = NEW, found["conditions"]
    for row in (*found["retrieval"][1:], *found["clustering"]):
        row["conditions"] = before
    assert page.evaluation_page(found)[-1] == (
        "Measured on D, torch 2, pytorch-metric-learning 3, commit b, b: `python million.py`. Measured before that, at "
        f"commit {before['commit']}, {before['date']}: `{before['command']}`: 125,000 vectors, 250,000 vectors, 500,000 "
        "vectors, 1,000,000 vectors, k-means of 1,000,000."
    )
    del found["retrieval"][-1]
    with pytest.raises(SystemExit, match="evaluation of 1,000,000 vectors on a GPU; measure them first"):
        page.headline(engine, found)
    assert page.evaluation_page({**found, "retrieval": []}) == ["Not measured yet: `python benchmarks/million.py`."]


def test_the_page_says_in_what_batches_of_float32_were_multiplied() -> None:
    page = script("gpu_page")
    errors = {"value": 1e-7, "gradient": 2e-7}
    rows = [
        {"loss": "x", "n": 4096, "precision": kind, "compiled": errors, "plain": errors, "same bits": True}
        for kind in ("highest", "high")
    ]
    lines = page.exact({"conditions": NEW, "rows": rows})
    assert lines[0].startswith("| loss | n | products | value, nearkin |")
    assert lines[2] == "| x | 4,096 | float32 | 1.0e-07 | 1.0e-07 | 2.0e-07 | 2.0e-07 | yes |"
    assert lines[3].startswith("| x | 4,096 | tf32 |") and len({line.count("|") for line in lines[:4]}) == 1
    rows[0]["conditions"] = OLD
    assert page.exact({"conditions": NEW, "rows": rows})[-2].endswith("`python million.py`: x 4,096 (float32).")

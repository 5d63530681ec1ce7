"""What benchmarks share: rows measured again take the place of their like, the others keep what they were measured under."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmark.scripts import script


def test_rows_that_were_not_measured_again_stay() -> None:
    merged = script("harness").merged
    old = {"conditions": {"commit": "a"}, "rows": [{"loss": "x", "n": 1, "ms": 5}, {"loss": "y", "n": 1, "ms": 6}]}
    new = {"conditions": {"commit": "b"}, "rows": [{"loss": "y", "n": 1, "ms": 3}]}
    found = merged(old, new, ("loss", "n"))
    assert found["conditions"] == {"commit": "b"}
    kept = {"loss": "x", "n": 1, "ms": 5, "conditions": {"commit": "a"}}
    assert found["rows"] == [kept, {"loss": "y", "n": 1, "ms": 3}]
    later = merged(found, {"conditions": {"commit": "c"}, "rows": [{"loss": "z", "n": 2}]}, ("loss", "n"))
    assert [row.get("conditions") for row in later["rows"]] == [{"commit": "a"}, {"commit": "b"}, None]
    assert merged(None, new, ("loss", "n")) == new


def test_rows_of_one_run_that_was_stopped_and_went_on_are_said_to_be_of_one() -> None:
    merged = script("harness").merged
    now = {"commit": "a", "date": "today"}
    old = {"conditions": {"commit": "b"}, "rows": [{"n": 1, "conditions": now}, {"n": 2}]}
    found = merged(old, {"conditions": now, "rows": [{"n": 3}]}, ("n",))
    assert found["rows"] == [{"n": 1}, {"conditions": {"commit": "b"}, "n": 2}, {"n": 3}]


def test_what_was_measured_here_is_known() -> None:
    harness = script("harness")
    now = {"commit": "a", "device": "D", "date": "today"}
    part = {"conditions": now | {"date": "yesterday"}, "rows": [{"n": 1}]}
    part["rows"] += [{"n": 2, "conditions": now | {"commit": "b"}}, {"n": 3, "conditions": now | {"device": "E"}}]
    part["rows"] += [{"n": 4, "conditions": now, "ms": 5}]
    assert harness.rows_at_hand(part, now, ("n",)) == {(1,): {"n": 1}, (4,): {"n": 4, "ms": 5}}
    assert harness.rows_at_hand(None, now, ("n",)) == {}
    for commit in ("a*", "unknown"):  # nobody knows whether it is the same code
        part["conditions"]["commit"] = commit
        assert harness.rows_at_hand({**part, "rows": [{"n": 1}]}, now | {"commit": commit}, ("n",)) == {}


def test_a_result_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = script("harness")
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    harness.write("one.json", {"n": 1})
    with pytest.raises(TypeError):
        harness.write("one.json", {"n": 2, "not json": harness})
    assert json.loads((tmp_path / "one.json").read_text()) == {"n": 1}


def test_an_empty_commit_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    harness = script("harness")
    monkeypatch.setattr(harness, "ROOT", tmp_path)  # no git there
    monkeypatch.setenv("COMMIT", "")
    assert harness.commit() == harness.UNKNOWN and not harness.exactly(harness.commit())
    monkeypatch.setenv("COMMIT", "abc1234")
    assert harness.commit() == "abc1234" and harness.exactly("abc1234") and not harness.exactly("abc1234*")


def test_the_page_says_which_rows_are_older() -> None:
    before = {"commit": "a", "date": "yesterday", "command": "python old.py"}
    now = {"device": "D", "versions": {"torch": "2", "pytorch-metric-learning": "3"}, "commit": "b"}
    now |= {"date": "today", "command": "python new.py"}
    rows = [{"loss": "y", "n": 1}, {"loss": "x", "n": 4096, "conditions": before}]
    assert script("gpu_page").measured({"conditions": now, "rows": rows}) == (
        "Measured on D, torch 2, pytorch-metric-learning 3, commit b, today: `python new.py`. "
        "Measured before that, at commit a, yesterday: `python old.py`: x 4,096."
    )

"""What benchmarks share: rows measured again take the place of their like, the others keep what they were measured under."""

from __future__ import annotations

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


def test_the_page_says_which_rows_are_older() -> None:
    before = {"commit": "a", "date": "yesterday", "command": "python old.py"}
    now = {"device": "D", "versions": {"torch": "2", "pytorch-metric-learning": "3"}, "commit": "b"}
    now |= {"date": "today", "command": "python new.py"}
    rows = [{"loss": "y", "n": 1}, {"loss": "x", "n": 4096, "conditions": before}]
    assert script("gpu_page").measured({"conditions": now, "rows": rows}) == (
        "Measured on D, torch 2, pytorch-metric-learning 3, commit b, today: `python new.py`. "
        "Measured before that, at commit a, yesterday: `python old.py`: x 4,096."
    )

"""What the page says about second looks is what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
METHODS = ("none", "expansion", "reciprocal")


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "rerank.json").read_bytes())
    return found


def test_the_table_of_second_looks_is_that_of_the_results_file() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    text = text[text.index("<!-- rerank -->") : text.index("<!-- /rerank -->")]
    shown = [line for line in text.splitlines() if line.startswith("| cub200")]
    content = results()
    wanted = [
        " | ".join([f"| {row['data']}", row["recipe"], again, *(f"{100 * value:.1f}" for value in row[again].values())])
        for row in content["rows"]
        for again in METHODS
    ]
    assert shown == [f"{line} |" for line in wanted]
    assert content["conditions"]["command"] in text


def test_what_the_page_concludes_holds_in_the_results_file() -> None:
    for row in results()["rows"]:
        plain = row["none"]
        for again in METHODS[1:]:
            assert row[again]["map@r"] > plain["map@r"]
            assert all(row[again][f"recall@{k}"] < plain[f"recall@{k}"] for k in (2, 4, 8))
        assert row["expansion"]["recall@1"] < plain["recall@1"] < row["reciprocal"]["recall@1"]


def test_without_a_second_look_the_run_is_measured_as_by_itself() -> None:
    """In the recipes' file stands what the same run measured; kept vectors of 16 bits may turn near ties."""
    recipes = json.loads((ROOT / "benchmarks" / "results" / "recipes.json").read_bytes())["runs"]
    [row] = results()["rows"]
    [run] = [run for run in recipes if run["recipe"] == row["recipe"]]
    for name, value in row["none"].items():
        assert row["run"][name] == run[name]
        assert abs(value - run[name]) < 1e-3, name

"""The page about evaluation runs, its example is right, and its table is that of the results file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from nearkin import evaluation

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evaluation.md").read_text()


def test_the_examples_run() -> None:
    embeddings, labels = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 10
    labels[-1] = 99  # alone in its class: R = 0
    names: dict[str, Any] = {
        "evaluation": evaluation,
        "embeddings": embeddings,
        "labels": labels,
        "is_query": torch.arange(40) < 15,
        "other": evaluation.per_query(embeddings.flip(1).cumsum(1), labels),
        "rank": 1,
        "processes": 2,
        "shares": [evaluation.per_query(embeddings, labels, rows=slice(rank, None, 2)) for rank in range(2)],
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, "docs/evaluation.md", "exec"), names)
    assert names["whole"].means()["queries"] == 39 and names["share"].rows.tolist() == list(range(1, 40, 2))
    assert len(names["sums"][0]) == 10 and 0 < names["p"] <= 1


def test_the_worked_example() -> None:
    # Wrong, right, right, wrong, as on the page.
    index, label, gallery = [[0, 1, 2, 3]], [1], [0, 1, 1, 0]
    assert evaluation.recall_at_k(index, label, gallery, (1, 2)).tolist() == [0, 1]
    assert float(evaluation.r_precision(index, label, gallery)) == 1 / 2
    assert float(evaluation.map_at_r(index, label, gallery)) == 1 / 4
    assert float(evaluation.mean_average_precision(index, label, gallery)) == pytest.approx(7 / 12)


def test_every_measure_is_explained() -> None:
    for name in evaluation.METRICS:
        assert f"| `{'recall@K' if name == 'recall' else name}` |" in PAGE


def test_the_table_is_that_of_the_results_file() -> None:
    result = json.loads((ROOT / "benchmarks" / "results" / "evaluation-cpu.json").read_text())
    assert set(result["rows"]) == {"recall", "retrieval", "every_retrieval", "clustering"}
    assert {"device", "threads", "versions", "commit", "command"} <= set(result["conditions"])
    begin, end = PAGE.index("<!-- evaluation -->"), PAGE.index("<!-- /evaluation -->")
    table = PAGE[begin:end]
    for row in result["rows"].values():
        for name, seconds in row["seconds"].items():
            assert f"| {name} | {seconds['median']:.1f} (" in table
    # The bars of this benchmark.
    recall = result["rows"]["recall"]
    assert 0.6 < recall["values"]["nearkin"]["recall@1"] < 0.8
    assert recall["seconds"]["nearkin"]["median"] < recall["seconds"]["faiss"]["median"]
    assert recall["memory"]["nearkin"] < 1.5 * 2**30
    assert result["rows"]["clustering"]["seconds"]["nearkin"]["median"] < 180

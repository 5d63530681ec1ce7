"""Models trained elsewhere are measured, ranked and shown as runs of a benchmark are, also beside these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nearkin import elsewhere, evaluation, results, tournament
from nearkin.benchmark.state import rebuild
from nearkin.cli import main
from tests.benchmark.grids import grid

LABELS = torch.arange(60) // 5


def embedded(noise: float, seed: int, dim: int = 12) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.eye(12)[LABELS][:, :dim] + noise * torch.randn(60, dim, generator=generator)


def test_models_are_told_apart_and_shown(tmp_path: Path) -> None:
    for seed in range(3):
        good = elsewhere.add(tmp_path, "good", embedded(0.3, seed), LABELS, seed=seed)
        elsewhere.add(str(tmp_path), "bad", embedded(2.0, seed).numpy(), LABELS.tolist(), seed=seed)
    expected = evaluation.evaluate(embedded(0.3, 2), LABELS, ks=(1, 2, 4, 8))
    assert good.metrics["recall@1"] == pytest.approx(expected["recall@1"])
    found = results.read(tmp_path)
    assert len(found) == 6
    verdict = tournament.settle(found, tmp_path)
    assert (verdict.winner, verdict.certain) == ("good", True)
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    assert ", ," not in page and "mine, mine" not in page
    assert "Pictures of mine are not shown: good was trained elsewhere, from images that nearkin has not seen." in page


def test_one_model_under_several_seeds_is_one_model(tmp_path: Path) -> None:
    for seed in range(3):
        elsewhere.add(tmp_path, "good", embedded(0.3, 0), LABELS, seed=seed)
        elsewhere.add(tmp_path, "bad", embedded(2.0, 0), LABELS, seed=seed)
    verdict = tournament.settle(results.read(tmp_path), tmp_path)
    assert (verdict.winner, verdict.certain) == ("good", False)
    assert any("gave the same answer to each query" in note for note in verdict.notes)


def test_the_same_model_again_stands_instead_of_the_first(tmp_path: Path) -> None:
    elsewhere.add(tmp_path, "mine", embedded(2.0, 0), LABELS)
    again = elsewhere.add(tmp_path, "mine", embedded(0.1, 0), LABELS)
    assert results.read(tmp_path) == [again]


def test_queries_and_gallery(tmp_path: Path) -> None:
    asks = torch.arange(60) % 5 == 0
    added = elsewhere.add(tmp_path, "mine", embedded(0.5, 0), LABELS, query=asks, ks=(1,), metrics=("recall",))
    assert added.metrics == {"recall@1": evaluation.evaluate(embedded(0.5, 0), LABELS, ks=(1,), query=asks)["recall@1"]}
    assert len(results.queries(tmp_path, added)["rows"]) == 12


def test_beside_the_runs_of_a_benchmark(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    path, out = grid(tmp_path, losses='["margin"]'), tmp_path / "out"
    assert main(["bench", str(path), "--out", str(out)]) == 0
    [run] = results.read(out)
    rows = results.queries(out, run)
    labels = torch.from_numpy(rows["labels"])
    facts: dict[str, Any] = {"data": run.data, "network": run.network, "protocol": run.protocol, "dim": run.dim}
    vectors = torch.eye(int(labels.max()) + 1)[labels]
    mine = elsewhere.add(out, "mine", vectors, labels, **facts)
    assert mine.experiment == run.experiment
    assert main(["bench", str(path), "--out", str(out)]) == 0  # the grid does not know it, and leaves it
    assert results.read(out) == [run, mine]
    assert tournament.settle(results.read(out), out).winner == "mine"
    assert rebuild(out) == [run, mine]
    with pytest.raises(ValueError, match="runs to be compared must have been asked the same queries"):
        elsewhere.add(out, "mine", vectors.flip(0), labels.flip(0), **facts)
        tournament.settle(results.read(out), out)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"protocol": "fixed_validatoin"},
            "protocol 'fixed_validatoin' is not known; did you mean 'fixed_validation'?",
        ),
        (
            {"class_names": ["a", "b"]},
            "labels must lie between 0 and 1, one class name for each, got values from 0 to 11; "
            "renumber the labels or name all classes.",
        ),
        ({"label": None}, "add: label must be a name that is not empty, got None; change label."),
        ({"label": ""}, "add: label must be a name that is not empty, got ''; change label."),
        ({"data": None}, "add: data must be text, got None; change data."),
        ({"network": 18}, "add: network must be text, got 18; change network."),
        (
            {"seed": "0"},
            "add: seed must be a whole number at least 0 and at most 9223372036854775807, got '0'; change seed.",
        ),
        ({"dim": 8.0}, "add: dim must be a whole number at least 0, got 8.0; change dim."),
        ({"ks": (1, 0)}, "add: ks must be a whole number at least 1, got 0; change ks."),
        ({"metrics": "recal"}, "metric 'recal' is not known; did you mean 'recall'?"),
        ({"class_names": "ab"}, "add: class_names must be a list of names, got 'ab'; pass one name for each class."),
    ],
)
def test_what_is_wrong_is_one_sentence(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError)) as raised:
        elsewhere.add(tmp_path, **{"label": "mine", "embeddings": embedded(0.1, 0), "labels": LABELS} | changes)
    assert str(raised.value) == sentence and not list(tmp_path.iterdir())


def test_numbers_of_numpy_and_single_ones(tmp_path: Path) -> None:
    added = elsewhere.add(
        tmp_path, "mine", embedded(0.1, 0), LABELS, seed=np.int64(1), dim=np.int32(7), ks=1, metrics="recall"
    )
    assert list(added.metrics) == ["recall@1"] and (added.seed, added.dim) == (1, 7)
    assert results.read(tmp_path) == [added]


def test_an_experiment_is_not_named_twice(tmp_path: Path) -> None:
    for label in ("one", "two"):
        elsewhere.add(tmp_path, label, embedded(0.1, 0), LABELS)
    [table] = tournament.settle(results.read(tmp_path), tmp_path).experiments
    assert table.name == "mine, 12 dimensions, last_epoch"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import re

    page = (Path(__file__).parents[1] / "docs" / "tournament.md").read_text()
    [block] = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "elsewhere" in block]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"labels": LABELS, "models": {("a", 0): embedded(0.1, 0), ("b", 0): embedded(5.0, 0)}}
    exec(compile(block, "tournament.md", "exec"), names)
    assert names["verdict"].winner == "a"

"""A verdict says which losses taught the network nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from nearkin import results
from nearkin.tournament.settle import settle
from tests.tournament.made import benchmark, result


def notes(folder: Path, value: float | None, metric: str = "recall@1") -> list[str]:
    """The notes on two losses, of which one is right in about nine of ten answers and the other in half of them."""
    found = benchmark(folder, {"margin": 2.2, "triplet": 0.0})
    given = None if value is None else {"recall@1": value}
    verdict = settle([replace(run, untrained=given) for run in found], folder, metric)
    return [note for note in verdict.notes if "as it came" in note]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.1, "recall@1 10.00 %; by their means all losses are better."),
        (0.715, "recall@1 71.50 %; by their means triplet is not better."),
        (0.99, "recall@1 99.00 %; by their means no loss is better."),
    ],
)
def test_what_does_not_exceed_the_network_as_it_came_is_named(tmp_path: Path, value: float, said: str) -> None:
    assert notes(tmp_path, value) == [f"The network as it came has {said}"]


def test_nothing_is_said_where_nothing_was_measured(tmp_path: Path) -> None:
    assert notes(tmp_path / "older", None) == []
    assert notes(tmp_path / "other", 0.5, "nmi") == []


def test_experiments_in_which_a_loss_is_no_better_are_named(tmp_path: Path) -> None:
    found = []
    for dim, value in ((8, 0.1), (16, 0.99)):
        runs = benchmark(tmp_path / str(dim), {"margin": 2.2, "triplet": 0.0}, dim=dim)
        found += [replace(run, folder="", untrained={"recall@1": value}) for run in runs]
    told = [note for note in settle(found, tmp_path).notes if "as it came" in note]
    assert told == [
        "The network as it came is not exceeded by the means of all losses in 1 of 2 experiments: cub200, resnet50, 16 "
        "dimensions, fixed_validation (recall@1 99.00 %: no loss is better)."
    ]
    better = [replace(run, untrained={"recall@1": 0.1}) for run in found]
    told = [note for note in settle(better, tmp_path).notes if "as it came" in note]
    assert told == ["By their means all losses are better than the network as it came, in 2 experiments."]


def test_the_mean_is_that_of_the_runs_that_have_it() -> None:
    runs = [replace(result("margin", seed), untrained={"recall@1": value}) for seed, value in enumerate((0.2, 0.4))]
    runs += [result("triplet"), replace(result("nra", dim=8), untrained={"recall@1": 0.9})]
    found = results.untrained(runs)
    assert found == {runs[0].experiment: pytest.approx(0.3), runs[-1].experiment: 0.9}
    assert results.untrained(runs, "nmi") == {}


def test_lines_of_earlier_versions_and_wrong_ones(tmp_path: Path) -> None:
    line = asdict(result("margin"))
    del line["untrained"]
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert results.read(path)[0].untrained is None
    path.write_text(json.dumps(line | {"untrained": {"recall@1": 71.5}}) + "\n")
    with pytest.raises(ValueError, match="got recall@1 71.5, which is no share from 0 to 1"):
        results.read(path)

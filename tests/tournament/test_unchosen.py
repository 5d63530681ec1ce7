"""A verdict says where validation was the same in every epoch, so that nothing was chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nearkin.results import Result
from nearkin.tournament.settle import settle
from nearkin.tournament.unchosen import unchosen
from tests.tournament.made import benchmark


def measured(folder: Path, runs: Sequence[Result], *curves: Sequence[float], **validation: Any) -> list[Result]:
    """The runs, each with a log of one of these curves in turn."""
    made = []
    for number, run in enumerate(runs):
        curve = curves[number % len(curves)]
        lines = [{"kind": "validate", "epoch": epoch, "recall@1": value} for epoch, value in enumerate(curve)]
        (folder / run.folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        made.append(replace(run, validation={"epoch": 0, "recall@1": curve[0], **validation}))
    return made


@pytest.fixture
def runs(tmp_path: Path) -> list[Result]:
    return benchmark(tmp_path, {"margin": 1.0, "triplet": 0.0})


WAY = (
    "there the epoch was not really chosen, the first one was taken; keep more classes back with a lower ratio or fewer "
    "folds."
)


def test_a_measure_that_stays_the_same_chooses_nothing(tmp_path: Path, runs: list[Result]) -> None:
    found = measured(tmp_path, runs, [1.0, 1.0, 1.0], classes=2, queries=48)
    told = f"Validation had 2 classes, 48 queries, and did not change between epochs in 6 of 6 runs: {WAY}"
    assert unchosen(found, tmp_path) == [told] and told in settle(found, tmp_path).notes


def test_older_runs_do_not_say_how_many_classes(tmp_path: Path, runs: list[Result]) -> None:
    found = measured(tmp_path, runs, [0.5, 0.5], [0.5, 0.6], queries=1200)
    told = f"Validation had 1,200 queries, and did not change between epochs in 3 of 6 runs: {WAY}"
    assert unchosen(found, tmp_path) == [told]


def test_nothing_is_said_where_it_chose_or_nothing_is_known(tmp_path: Path, runs: list[Result]) -> None:
    assert unchosen(runs, tmp_path) == []
    assert unchosen(measured(tmp_path, runs, [0.5, 0.6], queries=48), tmp_path) == []
    assert unchosen(measured(tmp_path, runs, [0.5], queries=48), tmp_path) == []  # one epoch
    assert unchosen([replace(run, folder="gone") for run in runs], tmp_path) == []

"""The runs of a benchmark and its report through the server, against the tournament itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nearkin import results, tournament
from nearkin.report.bench import read
from nearkin.serve.application import app
from nearkin.serve.command import _report
from nearkin.serve.runs import described
from tests.report.made import add, benchmark, result
from tests.serve.conftest import LOCAL, TestClient
from tests.tournament.made import asked


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("birds")
    benchmark(folder)
    return folder


@pytest.fixture(scope="module")
def visitor(folder: Path, birds: Path) -> Iterator[Any]:
    page = birds / "report" / "index.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text("<!doctype html><title>report</title>")
    with TestClient(app(folder, report=page, results=birds), base_url=LOCAL) as found:
        yield found


def test_the_board_is_that_of_the_tournament(visitor: Any, birds: Path) -> None:
    found = visitor.get("/api/runs").json()["bench"]
    verdict = tournament.settle(results.read(birds), birds, "recall@1")
    assert found["sentence"] == verdict.sentence
    board = found["experiments"][0]["board"]
    assert [row["label"] for row in board] == [standing.label for standing in verdict.standings]
    for row, standing in zip(board, verdict.standings, strict=True):
        wanted = (standing.score, standing.low, standing.high)
        assert (row["score"], row["low"], row["high"]) == pytest.approx(wanted, abs=1e-6)
        assert row["letters"] == standing.letters and row["runs"] == 2
        assert row["key"] == f"bench/0/{row['label']}" and row["asked"]
    lines = found["experiments"][0]["curves"][0]["lines"]
    assert len(lines) == 6 and lines[0]["points"][0] == [1, pytest.approx(0.2)]


def test_the_word_stands_beside_curves_of_the_test_set_that_chose(tmp_path: Path) -> None:
    benchmark(tmp_path, protocol="test_feedback")
    [found] = described(read(tmp_path))["experiments"]
    assert "test_feedback" in found["name"]
    assert [curve["on"] for curve in found["curves"]] == ["test classes (test_feedback)"]


def test_a_run_that_comes_later_is_seen(folder: Path, tmp_path: Path) -> None:
    benchmark(tmp_path)
    with TestClient(app(folder, results=tmp_path), base_url=LOCAL) as client:
        assert client.get("/api/runs").json()["bench"]["failed"] == []
        add(tmp_path, result("angular", status="failed", error="it diverged", metrics={}))
        assert client.get("/api/runs").json()["bench"]["failed"] == ["angular, seed 0: it diverged"]


def test_a_grid_that_is_not_finished_is_said_and_named(folder: Path, tmp_path: Path) -> None:
    made = benchmark(tmp_path)
    with TestClient(app(folder, results=tmp_path), base_url=LOCAL) as client:
        assert client.get("/api/runs").json()["bench"]["missing"] == []
        asked(tmp_path, *made, result("angular"), result("angular", 1), result("margin", 2))
        found = client.get("/api/runs").json()["bench"]
    assert found["sentence"].endswith("3 of 9 runs of the grid are missing, among them all of angular.")
    assert found["missing"] == ["angular: 2 of 2 runs not run yet", "margin: 1 of 3 runs not run yet"]
    assert found["failed"] == []


def test_a_new_grid_is_seen_and_what_it_passes_over_is_said(folder: Path, tmp_path: Path) -> None:
    made = benchmark(tmp_path)
    with TestClient(app(folder, results=tmp_path), base_url=LOCAL) as client:
        before = client.get("/api/runs").json()["bench"]
        kept = [run.id for run in made if run.label != made[0].label]
        (tmp_path / results.CURRENT).write_text(json.dumps(kept))
        found = client.get("/api/runs").json()["bench"]
    assert made[0].label in [row["label"] for row in before["experiments"][0]["board"]]
    assert made[0].label not in [row["label"] for row in found["experiments"][0]["board"]]
    assert not any("left out" in note for note in before["notes"])
    assert found["notes"][0].endswith("2 of 6 results belong to runs that the grid no longer has; they are left out.")


def test_a_grid_without_results_is_a_sentence(folder: Path, tmp_path: Path) -> None:
    benchmark(tmp_path)
    with TestClient(app(folder, results=tmp_path), base_url=LOCAL) as client:
        client.get("/api/runs")
        (tmp_path / results.CURRENT).write_text('["another"]')
        found = client.get("/api/runs").json()["bench"]
        assert "must hold at least one result of the grid" in found["sentence"] and found["experiments"] == []
        assert client.get("/api/sources").json() == {"sources": []}


def test_the_report_is_shown_as_a_stranger(visitor: Any, client: Any) -> None:
    answer = visitor.get("/report")
    assert answer.status_code == 200 and "<title>report</title>" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;") and "allow-same-origin" not in policy
    assert client.get("/report").status_code == 404 and client.get("/api/runs").status_code == 404


def test_where_a_report_is_looked_for(visitor: Any, birds: Path, tmp_path: Path) -> None:
    page = birds / "report" / "index.html"
    assert _report(str(birds)) == (page, birds)
    assert _report(str(birds / results.FILE)) == (page, birds)
    assert _report(str(page)) == (page, birds)
    assert _report(str(page.parent)) == (page, birds)
    assert _report("") == (None, None)
    with pytest.raises(ValueError, match="report must be the folder of a benchmark"):
        _report(str(tmp_path / "none" / "index.html"))

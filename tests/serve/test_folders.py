"""Runs that were given, against their own files and against plain arithmetic."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy import stats

from nearkin import config
from nearkin.serve.application import app
from nearkin.serve.folders import Folders, check, names, state
from nearkin.train.folder import RunFolder
from nearkin.train.settings import Train
from tests.patience import until
from tests.serve.conftest import LOCAL, TestClient


@pytest.fixture(scope="module")
def visitor(folder: Path, trained_runs: Path) -> Iterator[Any]:
    runs = [trained_runs / "margin", trained_runs / "contrastive"]
    with TestClient(app(folder, runs=runs), base_url=LOCAL) as found:
        yield found


@pytest.fixture
def unfinished(trained_runs: Path, tmp_path: Path) -> Path:
    """A run as it is after its second epoch."""
    place = tmp_path / "unfinished"
    shutil.copytree(trained_runs / "margin", place)
    (place / "metrics.json").unlink()
    (place / "queries.safetensors").unlink()
    lines = (place / "log.jsonl").read_text().splitlines(keepends=True)
    last = [number for number, line in enumerate(lines) if '"validate"' in line][1]
    (place / "log.jsonl").write_text("".join(lines[: last + 1]) + '{"kind": "epo')  # the next line is being written
    return place


def settled(ask: Any) -> dict[str, Any]:
    """What is said of the runs once their intervals are worked out."""
    return until(lambda: None if (found := ask())["pending"] else dict(found))


def test_what_is_no_run_is_said_in_one_sentence(tmp_path: Path) -> None:
    start = "serve: run must be a folder that nearkin train wrote, got "
    with pytest.raises(ValueError) as error:
        check(tmp_path)
    assert str(error.value) == (
        f"{start}{str(tmp_path)!r}, which has no config.toml; make one with nearkin train --out FOLDER."
    )
    with pytest.raises(ValueError, match=r"got 'nowhere', which is not there; check the path\.$"):
        check("nowhere")
    (tmp_path / "config.toml").write_text("lrr = 0.1\n")
    with pytest.raises(ValueError, match="whose settings cannot be read: .*lrr"):
        check(tmp_path)
    with pytest.raises(ValueError, match="which is a file"):
        check(tmp_path / "config.toml")


def test_names_are_short_and_differ() -> None:
    assert names([Path("runs/a/0"), Path("runs/b/0"), Path("runs/b/1")]) == ["a/0", "b/0", "1"]


def test_measures_are_those_of_the_run(visitor: Any, trained_runs: Path) -> None:
    found = visitor.get("/api/runs").json()
    assert found["bench"] is None
    runs = found["folders"]["runs"]
    assert [run["name"] for run in runs] == ["margin", "contrastive"]
    for run in runs:
        wanted = json.loads((trained_runs / run["name"] / "metrics.json").read_text())
        shown = {measure["name"]: measure["value"] for measure in run["measures"]}
        assert shown["R@1"] == pytest.approx(wanted["recall@1"], abs=1e-6)
        assert shown["NMI"] == pytest.approx(wanted["nmi"], abs=1e-6)
        assert run["state"] == "done" and run["said"] == f"done, epoch {wanted['epoch'] + 1} of 3"
        assert run["on"] == "test" and run["asked"]


def test_an_epoch_that_the_test_set_chose_says_so(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text("{}")
    for protocol, end in (("test_feedback", " by test_feedback"), ("fixed_validation", "")):
        said = state(tmp_path, {"epoch": 2, "epochs": 3, "settings": {"protocol": protocol}})["said"]
        assert said == f"done, epoch 2 of 3{end}"


def fed(trained: Path, place: Path) -> Path:
    """A run of two epochs so far that is to choose its epoch on the test set, and shows it as it goes."""
    settings = replace(RunFolder(trained).settings(), protocol="test_feedback", audit=False)
    place.mkdir()
    (place / "config.toml").write_text(config.dump(settings))
    kinds = (("epoch", "loss", 0.5), ("evaluate", "recall@1", 0.25))
    records = [{"kind": kind, "epoch": at, key: value + at / 4} for at in range(2) for kind, key, value in kinds]
    (place / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return place


def test_the_word_stands_beside_test_measures_of_every_run_that_chooses_by_them(
    trained_runs: Path, tmp_path: Path
) -> None:
    place = fed(trained_runs / "margin", tmp_path / "fed")
    plain = tmp_path / "plain"
    shutil.copytree(place, plain)
    settings = replace(RunFolder(plain).settings(), protocol="last_epoch")
    (plain / "config.toml").write_text(config.dump(settings))
    folders = Folders([place, plain])
    found = folders.facts()
    run, other = found["runs"]
    assert run["on"] == "test" and run["measures"][0]["value"] == 0.5
    assert run["said"] == "going on (test_feedback), epoch 2 of 3 done"
    assert other["said"] == "going on, epoch 2 of 3 done"
    assert {curve["on"]: [line["label"] for line in curve["lines"]] for curve in found["curves"]} == {
        "test classes": ["plain"],
        "test classes (test_feedback)": ["fed"],
        "training": ["fed", "plain"],
    }
    before = time.time() - 7300
    os.utime(place / "log.jsonl", (before, before))
    assert folders.facts()["runs"][0]["said"] == ("not finished (test_feedback), epoch 2 of 3 done, silent for 2 hours")
    (place / "metrics.json").write_text('{"epoch": 1, "recall@1": 0.5}')
    found = folders.facts()
    assert found["runs"][0]["said"] == "done, epoch 2 of 3 by test_feedback"
    assert found["curves"][1]["on"] == "test classes (test_feedback)"


def test_the_interval_reaches_t_standard_errors_over_classes(visitor: Any, trained_runs: Path) -> None:
    for run in settled(lambda: visitor.get("/api/runs").json()["folders"])["runs"]:
        arrays = load_file(trained_runs / run["name"] / "queries.safetensors")
        labels, right = arrays["labels"], arrays["recall@1"].astype(np.float64)
        classes = np.unique(labels)
        gaps = [(right[labels == kind] - right.mean()).sum() / (len(labels) / len(classes)) for kind in classes]
        error = np.sqrt(np.sum(np.square(gaps)) / (len(classes) * (len(classes) - 1)))
        half = stats.t.ppf(0.975, len(classes) - 1) * error
        measure = run["measures"][0]
        low, high = max(0, right.mean() - half), min(1, right.mean() + half)
        assert measure["low"] == pytest.approx(low, abs=0.25 * half) and measure["high"] == pytest.approx(
            high, abs=0.25 * half
        )
        assert 0 <= measure["low"] < measure["value"] < measure["high"] <= 1


def test_settings_that_differ_and_only_those(visitor: Any) -> None:
    settings = visitor.get("/api/runs").json()["folders"]["settings"]
    assert settings == [{"name": "loss", "values": {"margin": "margin", "contrastive": "contrastive"}}]


def curve(tmp_path: Path, lines: list[tuple[str, int, float]]) -> dict[str, Any]:
    """The curves of a run with these lines in its log: kind, epoch from 0, recall@1."""
    place = tmp_path / "run"
    place.mkdir()
    (place / "config.toml").write_text(config.dump(Train(data="glyphs", epochs=60)))
    records = [{"kind": kind, "epoch": epoch, "recall@1": value} for kind, epoch, value in lines]
    (place / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return {found["on"]: found["lines"][0]["points"] for found in Folders([place]).facts()["curves"]}


def test_the_measure_of_the_last_epoch_ends_its_curve(tmp_path: Path) -> None:
    found = curve(tmp_path, [("evaluate", 9, 0.4), ("evaluate", 19, 0.5), ("test", 29, 0.6)])
    assert found == {"test classes": [[10, 0.4], [20, 0.5], [30, 0.6]]}


def test_the_measure_of_a_chosen_epoch_is_no_point_of_a_curve(tmp_path: Path) -> None:
    found = curve(tmp_path, [("validate", 9, 0.4), ("validate", 19, 0.3), ("test", 9, 0.9)])
    assert found == {"validation classes": [[10, 0.4], [20, 0.3]]}


def test_an_epoch_that_was_measured_twice_is_one_point(tmp_path: Path) -> None:
    found = curve(tmp_path, [("evaluate", 9, 0.5), ("evaluate", 19, 0.4), ("test", 9, 0.5)])
    assert found == {"test classes": [[10, 0.5], [20, 0.4]]}


def test_curves_are_those_of_the_log(visitor: Any, trained_runs: Path) -> None:
    curves = visitor.get("/api/runs").json()["folders"]["curves"]
    assert [curve["on"] for curve in curves] == [
        "validation classes",
        "test classes, opened after the choice",
        "training",
    ]
    records = RunFolder(trained_runs / "margin").records("validate")
    wanted = [[record["epoch"] + 1, pytest.approx(record["recall@1"], abs=1e-6)] for record in records]
    assert curves[0]["lines"][0]["points"] == wanted and len(wanted) == 3
    losses = [record["loss"] for record in RunFolder(trained_runs / "margin").records("epoch")]
    assert [value for _, value in curves[2]["lines"][0]["points"]] == pytest.approx(losses, abs=1e-6)


def test_a_run_that_goes_on_is_shown_without_its_sealed_file(unfinished: Path) -> None:
    folders = Folders([unfinished])
    found = folders.facts()
    run = found["runs"][0]
    assert found["open"] and run["said"] == "going on, epoch 2 of 3 done"
    assert run["on"] == "validation" and not run["asked"]
    last = RunFolder(unfinished).records("validate")[-1]
    value = round(last["recall@1"], 6)
    assert run["measures"][0] == {"key": "recall@1", "name": "R@1", "value": value, "low": None, "high": None}
    assert found["pending"] == 0
    assert (unfinished / "audit.jsonl").exists()  # what the test set says stays closed until the epoch is chosen
    assert [curve["on"] for curve in found["curves"]] == ["validation classes", "training"]
    with (unfinished / "log.jsonl").open("a") as file:
        file.write("\n" + json.dumps({"kind": "epoch", "epoch": 2, "loss": 0.5}) + "\n")
    assert folders.facts()["runs"][0]["said"] == "going on, epoch 3 of 3 done"
    before = time.time() - 7300
    os.utime(unfinished / "log.jsonl", (before, before))
    found = folders.facts()
    assert not found["open"] and found["runs"][0]["said"] == "not finished, epoch 3 of 3 done, silent for 2 hours"


def test_a_run_that_ends_shows_its_test_measures(unfinished: Path, trained_runs: Path) -> None:
    folders = Folders([unfinished])
    assert folders.facts()["runs"][0]["on"] == "validation"
    for name in ("queries.safetensors", "metrics.json"):
        shutil.copy(trained_runs / "margin" / name, unfinished / name)
    run = settled(folders.facts)["runs"][0]
    wanted = json.loads((unfinished / "metrics.json").read_text())["recall@1"]
    assert run["state"] == "done" and run["on"] == "test"
    assert run["measures"][0]["low"] < run["measures"][0]["value"] == pytest.approx(wanted, abs=1e-6)


def test_a_run_that_has_only_begun(unfinished: Path) -> None:
    (unfinished / "log.jsonl").write_text("")
    found = Folders([unfinished]).facts()
    assert found["runs"][0]["said"] == "going on, in its first epoch" and found["runs"][0]["measures"] == []
    assert found["curves"] == []


def test_without_answers_there_is_no_interval_and_it_says_why(trained_runs: Path, tmp_path: Path) -> None:
    place = tmp_path / "bare"
    shutil.copytree(trained_runs / "margin", place)
    (place / "queries.safetensors").unlink()
    folders = Folders([place])
    run = settled(folders.facts)["runs"][0]
    assert run["measures"][0]["low"] is None and not run["asked"]
    assert run["why"].startswith("No interval: run bare (bare, seed 0) kept no queries.safetensors")


def test_tables_of_settings_are_taken_apart(trained_runs: Path, tmp_path: Path) -> None:
    places = []
    for number, alpha in enumerate((0.1, 0.2)):
        place = tmp_path / str(number)
        shutil.copytree(trained_runs / "margin", place)
        settings = RunFolder(place).settings()
        object.__setattr__(settings, "loss_settings", {"alpha": alpha})
        object.__setattr__(settings, "root", f"elsewhere/{number}")  # where images lie makes no other run
        (place / "config.toml").write_text(config.dump(settings))
        places.append(place)
    found = Folders(places).facts()["settings"]
    assert found == [{"name": "loss_settings.alpha", "values": {"0": "0.1", "1": "0.2"}}]

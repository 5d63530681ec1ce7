"""The epochs that a run kept, as the page asks for them: made in the background, kept, sealed while they must be."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nearkin.distributed import Ranks
from nearkin.serve import way
from nearkin.serve.epochs import FILE
from nearkin.train import epochs, prepare
from nearkin.train.folder import RunFolder
from nearkin.train.screen import Silent
from tests.patience import until
from tests.serve.conftest import LOCAL, TestClient


def served(folder: Path, run: Path) -> Any:
    from nearkin.serve.application import app

    return TestClient(app(folder, runs=[run]), base_url=LOCAL)


def settled(client: Any, run: str) -> dict[str, Any]:
    """What is said of a run once it is no longer being laid out."""

    def ask() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get("/api/epochs/facts", params={"run": run}).json()
        return None if found.get("state") == "making" else found

    return until(ask)


@pytest.fixture(scope="module")
def client(folder: Path, kept_run: Path) -> Iterator[Any]:
    with served(folder, kept_run) as found:
        yield found


def test_facts_points_and_pictures_are_those_of_the_test_images(client: Any, kept_run: Path) -> None:
    assert client.get("/api/epochs").json() == {"runs": ["way"]}
    facts = settled(client, "way")
    assert facts["state"] == "ready" and facts["part"] == "test" and facts["images"] == 48
    folder = RunFolder(kept_run)
    said = {record["epoch"] + 1: record["recall@1"] for record in folder.records("evaluate")}
    said[4] = folder.metrics()["recall@1"]
    assert {one["epoch"]: one["value"] for one in facts["epochs"]} == pytest.approx(said, abs=1e-6)
    assert (facts["metric"], facts["word"]) == ("R@1", "") and list(said) == [1, 2, 3, 4]
    test = prepare.test_pack(folder.settings(), Silent())
    content = client.get("/api/epochs/points", params={"run": "way"}).content
    rows = np.frombuffer(content, "<i4", 2 * 48).reshape(48, 2)
    places = np.frombuffer(content, "<f4", offset=8 * 48).reshape(4, 48, 2)
    assert (rows[:, 0] == np.arange(48)).all() and np.abs(places).max() == pytest.approx(1)
    names = [name for name, _ in facts["classes"]]
    assert [names[kind] for kind in rows[:, 1]] == [test.class_names[label] for label in test.labels]
    assert [size for _, size in facts["classes"]] == [8] * 6
    shown = client.get("/epoch-image/7", params={"run": "way"})
    assert shown.headers["content-type"] == "image/png"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(shown.content)).convert("RGB")), test.image(7))
    recall = np.array(client.get("/api/epochs/recall", params={"run": "way"}).json()["recall"])
    assert recall.shape == (4, 6)
    assert recall.mean(1) == pytest.approx(
        [said[epoch] for epoch in sorted(said)], abs=0.07
    )  # float16 turns a near tie now and then


def test_the_word_stands_beside_measures_of_the_test_set_that_chose(
    folder: Path, kept_run: Path, tmp_path: Path
) -> None:
    place = tmp_path / "fed"
    shutil.copytree(kept_run, place)
    text = (place / "config.toml").read_text()
    (place / "config.toml").write_text(text.replace('"last_epoch"', '"test_feedback"'))
    with served(folder, place) as client:
        facts = settled(client, "fed")
    assert (facts["metric"], facts["word"]) == ("R@1 (test_feedback)", " (test_feedback)")


def test_what_was_laid_out_is_kept_in_the_run(
    client: Any, folder: Path, kept_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(client, "way")
    assert (kept_run / "epochs" / FILE).is_file()
    monkeypatch.setattr(way, "places", None)  # would fail if it were called
    with served(folder, kept_run) as second:
        assert settled(second, "way")["state"] == "ready"
        one, two = (found.get("/api/epochs/points", params={"run": "way"}).content for found in (client, second))
        assert one == two


def test_a_further_epoch_is_laid_out_anew(folder: Path, kept_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "going"
    shutil.copytree(kept_run, run)
    last = run / "epochs" / "0003.safetensors"
    later = last.read_bytes()
    last.unlink()
    with served(folder, run) as client:
        assert len(settled(client, "going")["epochs"]) == 3
        last.write_bytes(later)
        assert len(settled(client, "going")["epochs"]) == 4


def test_sentences(client: Any, folder: Path, kept_run: Path, tmp_path: Path) -> None:
    answer = client.get("/api/epochs/facts", params={"run": "wey"})
    assert answer.status_code == 404 and "did you mean 'way'?" in answer.json()["error"]
    settled(client, "way")
    answer = client.get("/epoch-image/48", params={"run": "way"})
    assert (answer.status_code, answer.json()["error"]) == (404, "There is no picture 48; it may have been removed.")
    empty = tmp_path / "none"
    shutil.copytree(kept_run, empty, ignore=shutil.ignore_patterns("*.safetensors"))
    with served(folder, empty) as other:
        assert settled(other, "none") == {"state": "failed", "said": "no epoch has been kept yet"}
        answer = other.get("/api/epochs/points", params={"run": "none"})
        assert answer.status_code == 404 and "no epoch has been kept yet" in answer.json()["error"]


def test_without_runs_there_are_no_epochs(folder: Path) -> None:
    from nearkin.serve.application import app

    with TestClient(app(folder), base_url=LOCAL) as client:
        assert client.get("/api/epochs").json() == {"runs": []}
        assert client.get("/api/epochs/facts", params={"run": "x"}).status_code == 404


def test_without_the_data_set_points_move_without_classes_and_the_reason_is_said(
    folder: Path, kept_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "lost"
    shutil.copytree(kept_run, run)
    text = (run / "config.toml").read_text().replace('data = "glyphs"', 'data = "cub200"')
    (run / "config.toml").write_text(text.replace('root = ""', f'root = "{tmp_path / "gone"}"'))
    with served(folder, run) as client:
        facts = settled(client, "lost")
        assert facts["state"] == "ready" and facts["classes"] == [] and not facts["pictures"] and facts["said"]
        content = client.get("/api/epochs/points", params={"run": "lost"}).content
        assert (np.frombuffer(content, "<i4", 96).reshape(48, 2)[:, 1] == -1).all()
        assert client.get("/epoch-image/0", params={"run": "lost"}).status_code == 404


def test_test_images_of_an_audited_run_are_sealed_until_it_has_chosen(folder: Path, tmp_path: Path) -> None:
    from nearkin.train.loop import train
    from tests.train.runs import tiny

    protocol: dict[str, Any] = {"protocol": "fixed_validation", "ratio": 0.6, "epochs": 2, "evaluate_every": 1}
    for name, audit in (("audited", True), ("plain", False)):
        train(tiny(tmp_path / name, tmp_path / "packs", keep_embeddings=True, audit=audit, **protocol))
    metrics = tmp_path / "audited" / "metrics.json"
    hidden = metrics.rename(tmp_path / "hidden.json")
    with served(folder, tmp_path / "audited") as client:
        assert "nobody looks at its test images before" in settled(client, "audited")["said"]
    hidden.rename(metrics)
    with served(folder, tmp_path / "audited") as client:
        facts = settled(client, "audited")
        assert facts["part"] == "test" and [one["value"] is not None for one in facts["epochs"]] == [True, True]
    with served(folder, tmp_path / "plain") as client:
        facts = settled(client, "plain")
        settings = RunFolder(tmp_path / "plain").settings()
        validating = prepare.parts(settings, prepare.packs(settings, Ranks(), Silent())[0])[1]
        assert validating is not None
        assert facts["part"] == "validation" and facts["images"] == len(validating) and facts["pictures"]
        said = [record["recall@1"] for record in RunFolder(tmp_path / "plain").records("validate")]
        assert [one["value"] for one in facts["epochs"]] == pytest.approx(said, abs=1e-6)
        assert epochs.kept(tmp_path / "plain")[0].images == "validation"

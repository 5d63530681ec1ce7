"""Queries of runs, one alone and two side by side, against what the runs answered."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from nearkin.data.glyphs import glyphs
from nearkin.report.bench import Bench, read
from nearkin.serve.application import app
from tests.patience import until
from tests.report.made import EACH, benchmark
from tests.serve.conftest import LOCAL, TestClient


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    benchmark(folder)
    return folder


@pytest.fixture(scope="module")
def visitor(folder: Path, birds: Path, trained_runs: Path) -> Iterator[Any]:
    runs = [trained_runs / "margin", trained_runs / "contrastive"]
    with TestClient(app(folder, results=birds, runs=runs), base_url=LOCAL) as found:
        yield found


def rights(bench: Bench, label: str) -> Any:
    table = bench.tables[0]
    return np.asarray(bench.answers(bench.counted(table, label)[0])["recall@1"]) > 0


def read_pictures(visitor: Any, of: str) -> dict[str, Any]:
    """What is said about the pictures once they are read."""

    def ask() -> dict[str, Any] | None:
        found: dict[str, Any] = visitor.get("/api/pictures", params={"of": of}).json()
        return None if found["state"] == "reading" else found

    return until(ask)


def test_what_can_be_chosen(visitor: Any) -> None:
    found = visitor.get("/api/sources").json()["sources"]
    assert [source["key"] for source in found[:3]] == ["run/margin", "run/contrastive", "bench/0/ranked_list"]
    assert all(source["asked"] for source in found) and found[0]["group"] == "Runs"


def test_queries_on_which_they_differ(visitor: Any, birds: Path) -> None:
    keys = {"one": "bench/0/ranked_list", "other": "bench/0/margin"}
    found = visitor.get("/api/compare", params={**keys, "count": 200}).json()
    bench = read(birds)
    one, other = rights(bench, "ranked_list"), rights(bench, "margin")
    wanted = {"both": one & other, "one": one & ~other, "other": ~one & other, "neither": ~one & ~other}
    assert found["tally"] == {name: int(mask.sum()) for name, mask in wanted.items()}
    assert {query["row"] for query in found["queries"]} == set(np.flatnonzero(one ^ other).tolist())
    for query in found["queries"]:
        assert query["one"][0]["right"] == one[query["row"]] and query["other"][0]["right"] == other[query["row"]]
        assert query["label"] == f"bird {query['row'] // EACH}"
    difference = found["difference"]
    assert difference["value"] == pytest.approx(one.mean() - other.mean(), abs=1e-6)
    assert difference["low"] < difference["value"] < difference["high"] and difference["classes"] == 10
    assert found["pictures"]["state"] == "failed" and "config.toml" in found["pictures"]["said"]


def test_failing_queries_of_a_run(visitor: Any, trained_runs: Path) -> None:
    found = visitor.get("/api/failing", params={"of": "run/margin", "count": 200}).json()
    arrays = load_file(trained_runs / "margin" / "queries.safetensors")
    wrong = np.flatnonzero(arrays["recall@1"] < 0.5)
    assert {query["row"] for query in found["queries"]} == set(arrays["rows"][wrong].tolist())
    assert (found["asked"], found["failed"]) == (len(arrays["rows"]), len(wrong))
    labels = dict(zip(arrays["rows"].tolist(), arrays["labels"].tolist(), strict=True))
    order = []
    for query in found["queries"]:
        near = arrays["nearest"][list(arrays["rows"]).index(query["row"])].tolist()
        order.append((sum(labels[row] == labels[query["row"]] for row in near), -query["hits"][0]["similarity"]))
        assert [hit["row"] for hit in query["hits"]] == near
        assert [hit["right"] for hit in query["hits"]] == [labels[row] == labels[query["row"]] for row in near]
    assert order == sorted(order)


def test_the_word_stands_beside_numbers_of_a_run_that_chose_by_the_test_set(
    folder: Path, trained_runs: Path, tmp_path: Path
) -> None:
    place = tmp_path / "fed"
    shutil.copytree(trained_runs / "margin", place)
    text = (place / "config.toml").read_text()
    (place / "config.toml").write_text(text.replace('"fixed_validation"', '"test_feedback"'))
    with TestClient(app(folder, runs=[place, trained_runs / "contrastive"]), base_url=LOCAL) as client:
        assert client.get("/api/failing", params={"of": "run/fed"}).json()["name"] == "fed (test_feedback)"
        assert client.get("/api/failing", params={"of": "run/contrastive"}).json()["name"] == "contrastive"
        found = client.get("/api/compare", params={"one": "run/contrastive", "other": "run/fed"}).json()
    assert (found["one"], found["other"]) == ("contrastive", "fed (test_feedback)")


def test_pictures_are_those_of_the_test_set(visitor: Any) -> None:
    import io

    from PIL import Image

    assert read_pictures(visitor, "run/margin") == {"state": "ready", "said": ""}
    splits = glyphs(classes=12, images=8)
    for part, table in (("test", splits.test), ("training", splits.train)):
        answer = visitor.get(f"/{part}-image/7", params={"of": "run/margin"})
        assert answer.status_code == 200 and answer.headers["content-type"] == "image/png"
        shown = np.asarray(Image.open(io.BytesIO(answer.content)).convert("L"))
        assert np.array_equal(shown, np.asarray(table.images[7]).squeeze())
        for wrong in (len(table), -1):
            missing = visitor.get(f"/{part}-image/{wrong}", params={"of": "run/margin"})
            assert missing.status_code == 404 and missing.json()["error"].startswith(f"There is no {part} image ")


def test_other_images_than_those_measured_are_not_shown(folder: Path, trained_runs: Path, tmp_path: Path) -> None:
    place = tmp_path / "other"
    shutil.copytree(trained_runs / "margin", place)
    text = (place / "config.toml").read_text()
    assert '"images" = 8' in text
    (place / "config.toml").write_text(text.replace('"images" = 8', '"images" = 4'))
    with TestClient(app(folder, runs=[place]), base_url=LOCAL) as client:
        found = read_pictures(client, "run/other")
        assert found == {"state": "failed", "said": "the images of this data set are not those that were measured"}


def test_errors(visitor: Any, client: Any) -> None:
    answer = visitor.get("/api/compare", params={"one": "run/margn", "other": "run/contrastive"})
    assert answer.status_code == 404 and "did you mean 'run/margin'?" in answer.json()["error"]
    answer = visitor.get("/api/compare", params={"one": "run/margin", "other": "bench/0/margin"})
    assert answer.status_code == 422
    assert answer.json()["error"] == (
        "Runs side by side must have been asked the same queries, got 48 and 60 queries from margin and margin; "
        "choose two that were tested on the same images."
    )
    assert visitor.get("/api/failing", params={"of": "bench/3/margin"}).status_code == 404
    assert client.get("/api/compare", params={"one": "a", "other": "b"}).status_code == 404
    assert client.get("/test-image/0", params={"of": "run/a"}).status_code == 404
    assert client.get("/api/sources").json() == {"sources": []}


def test_a_run_without_answers(folder: Path, trained_runs: Path, tmp_path: Path) -> None:
    place = tmp_path / "open"
    shutil.copytree(trained_runs / "margin", place)
    (place / "queries.safetensors").write_bytes(b"torn")
    with TestClient(app(folder, runs=[place]), base_url=LOCAL) as client:
        answer = client.get("/api/failing", params={"of": "run/open"})
        assert answer.status_code == 404 and answer.json()["error"].startswith("The answers of open cannot be read")
        assert str(place) not in answer.json()["error"]
        (place / "queries.safetensors").unlink()
        answer = client.get("/api/failing", params={"of": "run/open"})
        assert answer.json()["error"].startswith("open kept no answers to its queries")


def test_classes_of_images_that_ask_nothing_come_from_the_data_set(tmp_path: Path) -> None:
    """Queries and a gallery apart: the run knows the classes of its queries only."""
    import json

    from safetensors.numpy import save

    from nearkin.data.pack import pack
    from nearkin.data.table import ImageTable
    from nearkin.results import QUERIES
    from nearkin.serve.compare import answers
    from nearkin.serve.images import Images
    from nearkin.serve.sources import Source
    from tests.report.made import result

    arrays = {
        "rows": np.array([0, 1]), "labels": np.array([0, 1]), "nearest": np.array([[2, 3], [2, 3]], np.int32),
        "similarity": np.array([[0.9, 0.5], [0.8, 0.7]], np.float32), "recall@1": np.array([1.0, np.nan], np.float32),
    }  # fmt: skip
    (tmp_path / QUERIES).write_bytes(save(arrays, {"class_names": json.dumps(["cat", "dog"])}))
    source = Source("run/x", "x", "Runs", result("margin", folder=str(tmp_path)))
    images = Images(None)
    found = answers(source, images)
    assert found.rows.tolist() == [0] and found.right.tolist() == [True]  # a query without a score is left out
    assert [hit["right"] for hit in found.hits(0)] == [None, None]
    table = ImageTable(np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1]), ("cat", "dog"))
    images.test = pack(table, None, workers=0)
    hits = answers(source, images).hits(0)
    assert [(hit["label"], hit["right"]) for hit in hits] == [("cat", True), ("dog", False)]


def test_images_that_were_missing_are_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nearkin.serve import images

    library = images.Library()
    first = library.of(tmp_path)
    assert first.facts()["state"] == "failed" and library.of(tmp_path) is first
    monkeypatch.setattr(images, "AGAIN", -1.0)
    assert library.of(tmp_path) is not first

"""Two losses side by side, against what their runs answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearkin.data.pack import pack
from nearkin.data.table import ImageTable
from nearkin.report.bench import Bench, read
from nearkin.report.pictures import Pictures
from nearkin.serve import compare
from nearkin.serve.application import app
from tests.report.made import CLASSES, EACH, benchmark
from tests.serve.conftest import LOCAL, TestClient


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    benchmark(folder)
    return folder


@pytest.fixture
def visitor(folder: Path, birds: Path) -> Iterator[Any]:
    with TestClient(app(folder, results=birds), base_url=LOCAL) as found:
        yield found


def rights(bench: Bench, label: str) -> Any:
    table = bench.tables[0]
    return np.asarray(bench.answers(bench.counted(table, label)[0])["recall@1"]) > 0


def test_queries_on_which_they_differ(visitor: Any, birds: Path) -> None:
    found = visitor.get("/api/compare", params={"one": "ranked_list", "other": "margin", "count": 200}).json()
    bench = read(birds)
    one, other = rights(bench, "ranked_list"), rights(bench, "margin")
    wanted = {"both": one & other, "one": one & ~other, "other": ~one & other, "neither": ~one & ~other}
    assert found["tally"] == {name: int(mask.sum()) for name, mask in wanted.items()}
    assert {query["row"] for query in found["queries"]} == set(np.flatnonzero(one ^ other).tolist())
    for query in found["queries"]:
        assert query["one"][0]["right"] == one[query["row"]] and query["other"][0]["right"] == other[query["row"]]
        assert query["label"] == f"bird {query['row'] // EACH}"
    assert found["why"]  # these runs have no images


def test_pictures_of_the_test_set(visitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    images = [np.full((40, 50, 3), place, np.uint8) for place in range(CLASSES * EACH)]
    table = ImageTable(images, np.repeat(np.arange(CLASSES), EACH), tuple(f"bird {kind}" for kind in range(CLASSES)))
    held = pack(table, None, side=None, workers=0)
    monkeypatch.setattr(compare, "test_images", lambda bench, run: Pictures(held))
    answer = visitor.get("/test-image/0/7")
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/png"
    for wrong in ("/test-image/0/60", "/test-image/0/-1", "/test-image/9/0"):
        missing = visitor.get(wrong)
        assert missing.status_code == 404 and missing.json()["error"].startswith("There is no ")
    assert visitor.get("/api/compare", params={"one": "ranked_list", "other": "margin"}).json()["why"] == ""


def test_errors(visitor: Any, client: Any) -> None:
    answer = visitor.get("/api/compare", params={"one": "ranked_lst", "other": "margin"})
    assert answer.status_code == 422 and "did you mean 'ranked_list'?" in answer.json()["error"]
    assert visitor.get("/api/compare", params={"one": "margin", "other": "margin", "experiment": 3}).status_code == 404
    assert client.get("/api/compare", params={"one": "a", "other": "b"}).status_code == 404
    assert client.get("/test-image/0/0").status_code == 404

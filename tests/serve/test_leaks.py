"""Leaks between training images and others: planted copies are found, all of them, and nothing else."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nearkin.data.glyphs import glyphs
from nearkin.index import Index
from nearkin.serve.application import app
from nearkin.serve.prints import copies, taken
from tests.patience import until
from tests.serve.conftest import LOCAL, TestClient, png, untrained


def colour(image: Any) -> Any:
    return np.repeat(np.asarray(image).reshape(32, 32, 1), 3, 2)


def stored(pixels: Any, kind: str, size: tuple[int, int] = (32, 32), **options: Any) -> bytes:
    """A picture resized and stored anew."""
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels).squeeze()).resize(size, Image.Resampling.BICUBIC).save(buffer, kind, **options)
    return buffer.getvalue()


CHANGES: dict[str, Any] = {
    "the same": lambda pixels: png(np.asarray(pixels).squeeze()),
    "as JPEG": lambda pixels: stored(pixels, "JPEG", quality=75),
    "as WebP": lambda pixels: stored(pixels, "WEBP", quality=80),
    "larger": lambda pixels: stored(pixels, "PNG", (45, 45)),
    "smaller": lambda pixels: stored(pixels, "PNG", (29, 30)),
    "larger as JPEG": lambda pixels: stored(pixels, "JPEG", (48, 48), quality=70),
    "brighter": lambda pixels: png((np.asarray(pixels).squeeze() * 0.8 + 50).astype(np.uint8)),
    "mirrored": lambda pixels: png(np.ascontiguousarray(np.asarray(pixels).squeeze()[:, ::-1])),
}


def decoded(content: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.parametrize("change", CHANGES)
def test_copies_are_found_and_nothing_else(change: str) -> None:
    splits = glyphs(classes=40, images=8)
    known, others = ([colour(image) for image in table.images] for table in (splits.train, splits.test))
    sources = list(range(0, len(known), 11))
    planted = [decoded(CHANGES[change](splits.train.images[row])) for row in sources]
    told: list[tuple[int, int]] = []
    first = taken(iter([*others, *planted]), len(others) + len(planted), lambda *now: told.append(now))
    second = taken(iter(known), len(known), lambda *now: None)
    found = copies(first, second, lambda *now: told.append(now))
    wanted = {(len(others) + place, row) for place, row in enumerate(sources)}
    assert {(copy.first, copy.second) for copy in found} == wanted
    assert {copy.mirrored for copy in found} == {change == "mirrored"}
    assert all(done <= total for done, total in told) and told[-1][0] == told[-1][1]
    assert [copy.alike for copy in found] == sorted((copy.alike for copy in found), reverse=True)


def test_the_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    from nearkin.serve import prints

    table = glyphs(classes=12, images=8).train
    pictures = [colour(image) for image in table.images]
    whole = taken(iter(pictures), len(pictures), lambda *now: None)
    wanted = copies(whole, whole, lambda *now: None)
    assert {(copy.first, copy.second) for copy in wanted} >= {(row, row) for row in range(len(pictures))}
    monkeypatch.setattr(prints, "AT_ONCE", 100)
    monkeypatch.setattr(prints, "BLOCK", 5)
    assert copies(whole, whole, lambda *now: None) == wanted


def test_nothing_to_see_is_not_compared() -> None:
    plain = [np.full((40, 40, 3), level, np.uint8) for level in (10, 200, 200)]
    prints = taken(iter(plain), 3, lambda *now: None)
    assert prints.plain.all() and copies(prints, prints, lambda *now: None) == []
    none = taken(iter(()), 0, lambda *now: None)
    assert copies(none, prints, lambda *now: None) == copies(prints, none, lambda *now: None) == []


def searched(client: Any, of: str, **options: Any) -> dict[str, Any]:
    def ask() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get("/api/leaks", params={"of": of, **options}).json()
        if found["state"] != "going":
            return found
        assert found["said"] and 0 <= found["done"] <= found["total"]
        return None

    return until(ask)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of all test images of the runs and of three of their training images, stored anew in other classes."""
    root = tmp_path_factory.mktemp("planted")
    splits = glyphs(classes=12, images=8)
    for place, image in enumerate(splits.test.images):
        folder = root / f"letter{int(splits.test.labels[place])}"
        folder.mkdir(exist_ok=True)
        (folder / f"{place:03d}.png").write_bytes(png(np.asarray(image).squeeze()))
    for row, change, kind in ((3, "the same", "png"), (20, "larger as JPEG", "jpg"), (41, "smaller", "png")):
        (root / "letter0" / f"copy{row}.{kind}").write_bytes(CHANGES[change](splits.train.images[row]))
    place = tmp_path_factory.mktemp("index") / "planted.index"
    trained = untrained()
    Index.create(place, trained).add(root, trained, workers=0)
    return place


def test_leaks_into_the_index(planted: Path, trained_runs: Path) -> None:
    names = glyphs(classes=12, images=8).train
    with TestClient(app(planted, runs=[trained_runs / "margin"]), base_url=LOCAL) as client:
        found = searched(client, "run/margin")
        assert found["training"] == 48 and found["test"]["compared"] == 48
        assert found["test"]["total"] == 0 and found["test"]["pairs"] == []
        index = found["index"]
        assert (index["compared"], index["images"], index["total"]) == (51, 3, 3)
        pairs = {(pair["image"]["name"].split(".")[0], pair["training"]["row"]) for pair in index["pairs"]}
        assert pairs == {("copy3", 3), ("copy20", 20), ("copy41", 41)}
        for pair in index["pairs"]:
            assert pair["image"]["label"] == "letter0"
            assert pair["training"]["label"] == names.class_names[int(names.labels[pair["training"]["row"]])]
        fewer = searched(client, "run/margin", count=1)["index"]
        assert fewer["total"] == 3 and len(fewer["pairs"]) == 1  # the count is exact whatever is shown


def test_an_index_that_changes_is_looked_at_again(planted: Path, trained_runs: Path, tmp_path: Path) -> None:
    import shutil

    place = tmp_path / "changing.index"
    shutil.copytree(planted, place)
    with TestClient(app(place, runs=[trained_runs / "margin"]), base_url=LOCAL) as client:
        assert searched(client, "run/margin")["index"]["images"] == 3
        index = Index.open(place)
        index.remove([row.id for row in index.rows() if "copy20" in row.path])
        found = searched(client, "run/margin")["index"]
        assert (found["compared"], found["images"]) == (50, 2)


def test_images_that_cannot_be_read_are_a_sentence(folder: Path, trained_runs: Path, tmp_path: Path) -> None:
    import shutil

    place = tmp_path / "gone"
    shutil.copytree(trained_runs / "margin", place)
    text = (place / "config.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("data = ", "data_settings", "root"))]
    (place / "config.toml").write_text("\n".join(['data = "folder"', f'root = "{tmp_path}/nowhere"', *lines]))
    with TestClient(app(folder, runs=[place]), base_url=LOCAL) as client:
        found = searched(client, "run/gone")
        assert found["state"] == "failed" and "nowhere" in found["said"]
        assert client.get("/api/pictures", params={"of": "run/gone"}).json()["state"] == "failed"
    with TestClient(app(folder), base_url=LOCAL) as client:
        assert client.get("/api/leaks", params={"of": "run/gone"}).status_code == 404

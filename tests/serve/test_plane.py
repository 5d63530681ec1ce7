"""Places on the map, against scikit-learn and against what a map is for."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearkin.index import Index
from nearkin.serve import plane
from nearkin.serve.plane import Plane, components, spread_out
from tests.patience import until


def groups(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Unit vectors in eight groups far apart."""
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, 8, count)
    vectors = np.eye(16)[labels] + 0.08 * draws.normal(size=(count, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels


def test_components_are_those_of_scikit_learn() -> None:
    decomposition = pytest.importorskip("sklearn.decomposition", reason="needs scikit-learn")
    vectors, _ = groups(300)
    wanted = decomposition.PCA(2).fit_transform(vectors.astype(np.float64))
    found = components(vectors)
    for axis in range(2):
        assert abs(np.corrcoef(found[:, axis], wanted[:, axis])[0, 1]) == pytest.approx(1, abs=1e-4)
        assert found[:, axis].std() == pytest.approx(wanted[:, axis].std(), rel=1e-3)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_images(count: int) -> None:
    assert components(np.ones((count, 4), np.float32)).shape == (count, 2)
    assert components(np.ones((count, 1), np.float32)).shape == (count, 2)


def test_images_that_are_no_landmarks_lie_with_their_group() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors", reason="needs scikit-learn")
    vectors, labels = groups(600)
    places = spread_out(vectors, landmarks=150)
    assert places.shape == (600, 2) and np.isfinite(places).all()
    near = neighbors.NearestNeighbors(n_neighbors=6).fit(places).kneighbors(places, return_distance=False)[:, 1:]
    assert (labels[near] == labels[:, None]).mean() > 0.98
    assert (places == spread_out(vectors, landmarks=150)).all()


def test_a_map_is_made_once_and_kept(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    index = Index.open(folder)
    first = Plane(index, tmp_path / "map")
    until(lambda: first.final)
    assert first.method == "t-SNE" and np.abs(first.places).max() == pytest.approx(1)
    second = Plane(index, tmp_path / "map")
    assert second.final and (second.places == first.places).all()
    kept = next((tmp_path / "map").iterdir())
    kept.write_bytes(kept.read_bytes()[:-8])  # damaged: made again
    assert Plane(index, tmp_path / "map").method == "principal components"


def test_without_scikit_learn_components_stay(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "_can_improve", lambda: False)
    made = Plane(Index.open(folder), tmp_path / "map")
    assert made.final and made.method == "principal components" and not (tmp_path / "map").exists()


def test_points_as_the_page_reads_them(client: Any, folder: Path) -> None:
    index = Index.open(folder)
    made = client.get("/api/map").json()
    assert made["images"] == 49 and made["method"] in ("principal components", "t-SNE")
    content = client.get("/api/map/points").content
    assert len(content) == 49 * 16
    classes = [name for name, _ in client.get("/api/index").json()["classes"]]
    seen = set()
    for x, y, number, kind in struct.iter_unpack("<ffii", content):
        assert -1.001 <= x <= 1.001 and -1.001 <= y <= 1.001
        assert (classes[kind] if kind >= 0 else "") == index.row(number).label
        seen.add(number)
    assert seen == {row.id for row in index.rows()}


def test_keep_makes_the_map_at_once_for_the_page(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    copy = tmp_path / "copy.index"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("map"))
    index = Index.open(copy)
    assert plane.keep(index) == "t-SNE"
    shown = Plane(index, copy / plane.FOLDER)
    assert shown.final and shown.method == "t-SNE" and shown.numbers.tolist() == [row.id for row in index.rows()]
    index.remove(3)
    assert Plane(Index.open(copy), copy / plane.FOLDER, background=False).method == "principal components"


def test_many_images_get_the_components_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = np.array([9, 4, *[1] * 14])  # two directions stand out
    vectors = (np.random.default_rng(0).normal(size=(600, 16)) * spread).astype(np.float32)
    whole = components(vectors)
    monkeypatch.setattr(plane, "ENOUGH", 300)
    for axis in range(2):
        assert abs(np.corrcoef(components(vectors)[:, axis], whole[:, axis])[0, 1]) > 0.98

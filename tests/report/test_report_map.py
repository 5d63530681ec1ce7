"""The map of the embedding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from nearkin.report import embedding, read
from nearkin.report.subject import subjects


def test_principal_components_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_method", lambda: "principal components")
    vectors = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)
    found, expected = embedding.flat(vectors), PCA(2).fit_transform(vectors.astype(np.float64))
    signs = np.sign((found * expected).sum(0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-6)
    np.testing.assert_array_equal(found, embedding.flat(vectors))


def test_neighbours_stay_neighbours() -> None:
    rng = np.random.default_rng(0)
    centers = np.eye(4, 16) * 5
    vectors = (np.repeat(centers, 15, 0) + 0.1 * rng.normal(size=(60, 16))).astype(np.float32)
    places = embedding.flat(vectors)
    gaps = np.linalg.norm(places[:, None] - places, axis=2) + 1e9 * np.eye(60)
    assert (gaps.argmin(1) // 15 == np.arange(60) // 15).all()


def test_one_dimension_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_method", lambda: "principal components")
    assert embedding.flat(np.arange(5, dtype=np.float32)[:, None]).shape == (5, 2)


def test_whole_classes_are_taken(characters: Path) -> None:
    [subject] = subjects(read(characters))
    rows = embedding.chosen(subject, 24)
    taken = subject.labels[rows]
    assert 0 < len(rows) <= 24
    for label in np.unique(taken):
        assert (taken == label).sum() == (subject.labels == label).sum()


def test_the_map_is_kept_and_used_again(
    characters: Path, characters_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = read(characters, points=40, cache=characters_out / "cache")
    [subject] = subjects(bench)
    [kept] = (characters_out / "cache").glob("map-*.json")
    monkeypatch.setattr(embedding, "_embed", lambda *_: pytest.fail("embedded again"))
    found = embedding.layout(bench, subject)
    assert found is not None
    np.testing.assert_allclose(found[1], json.loads(kept.read_text())["places"])


def test_without_weights_there_is_no_map(birds: Path) -> None:
    bench = read(birds)
    [subject] = subjects(bench)
    assert embedding.layout(bench, subject) is None

"""Places from epoch to epoch: near what is alike at each of them, and comparable from one to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nearkin.serve import way
from tests.serve.test_plane import groups


def unit(vectors: Any) -> Any:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def training(count: int = 160, epochs: int = 3) -> tuple[list[Any], Any]:
    """An embedding in which eight groups come out of the noise, as in a training."""
    clear, labels = groups(count)
    noise = unit(np.random.default_rng(5).normal(size=clear.shape))
    shares = np.linspace(0.4, 1, epochs)
    return [unit(share * clear + (1 - share) * noise) for share in shares], labels


def silent(done: int, total: int) -> None:
    pass


def test_neighbours_stay_neighbours_and_points_move_less_than_in_maps_made_apart() -> None:
    manifold = pytest.importorskip("sklearn.manifold", reason="needs scikit-learn")
    vectors, _ = training()
    told: list[tuple[int, int]] = []
    places = way.places([lambda one=one: one for one in vectors], lambda done, total: told.append((done, total)))
    assert places.shape == (3, 160, 2) and np.abs(places).max() == pytest.approx(1)
    assert told == [(1, 3), (2, 3), (3, 3)]
    alone = np.stack([way.laid_out(one, None) for one in vectors])
    for one, found, apart in zip(vectors, places, alone, strict=True):
        kept = manifold.trustworthiness(one, found, n_neighbors=8)
        assert kept > manifold.trustworthiness(one, apart, n_neighbors=8) - 0.03
    moves = [np.linalg.norm(np.diff(path, axis=0), axis=2).mean() / path.std() for path in (places, alone)]
    assert moves[0] < 0.7 * moves[1]
    again = way.places([lambda one=one: one for one in vectors], silent)
    assert (again == places).all()


def test_an_epoch_that_is_turned_and_mirrored_is_put_back() -> None:
    places = np.random.default_rng(0).normal(size=(50, 2)) * [3, 1]
    places -= places.mean(0)
    turn = np.array([[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]])
    np.testing.assert_allclose(way.onto((places * [-1, 1]) @ turn, places), places, atol=1e-12)
    np.testing.assert_allclose(way.onto(3 * places, places), 3 * places, atol=1e-12)  # sizes say something: they stay


def test_the_same_epoch_twice_hardly_moves() -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    vectors, labels = groups(200)
    first, second = way.places([lambda: vectors, lambda: vectors], silent)
    middles = [[part[labels == kind].mean(0) for kind in range(8)] for part in (first, second)]
    assert np.linalg.norm(np.subtract(*middles), axis=1).max() < 0.25


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_images(count: int) -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(count, 4)))
    places = way.places([lambda: vectors, lambda: vectors], silent)
    assert places.shape == (2, count, 2) and np.isfinite(places).all()
    np.testing.assert_allclose(places[0], places[1], atol=1e-5)


def test_without_scikit_learn_principal_components_are_turned_onto_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearkin.report.embedding._method", lambda: "principal components")
    vectors, _ = groups(100)
    turned = vectors @ np.linalg.qr(np.random.default_rng(3).normal(size=(16, 16)))[0].astype(np.float32)
    places = way.places([lambda: turned, lambda: vectors], silent)
    np.testing.assert_allclose(places[0], places[1], atol=1e-4)


@pytest.mark.parametrize("asks", [False, True])
def test_recall_of_each_class_in_plain_loops(asks: bool) -> None:
    vectors, labels = training(90, 2)
    labels = labels.copy()
    labels[labels == 7] = -1  # not known
    query = np.random.default_rng(1).random(90) < 0.4 if asks else None
    found = way.recalls(vectors[0], labels, 8, query)
    assert np.isnan(found[7])
    for kind in range(7):
        right = []
        for row in np.flatnonzero(labels == kind):
            if query is not None and not query[row]:
                continue
            others = [other for other in range(90) if other != row and (query is None or not query[other])]
            best = max(others, key=lambda other, row=row: float(vectors[0][row] @ vectors[0][other]))  # type: ignore[misc]
            right.append(labels[best] == kind)
        assert found[kind] == pytest.approx(np.mean(right))

"""What an index says about itself, against plain loops and planted faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearkin.index import Index, Row
from nearkin.index.change import Change
from nearkin.index.thumbnails import thumbnail
from nearkin.serve.survey import doubles, survey
from tests.serve.conftest import untrained


@pytest.fixture
def planted(tmp_path: Path) -> Index:
    """Three groups of ten; image 3 carries the name of another group, images 20 and 30 are the same."""
    index = Index.create(tmp_path / "p.index", untrained())
    draws = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 10)
    vectors = np.eye(16)[groups] + 0.05 * draws.normal(size=(30, 16))
    vectors = np.concatenate([vectors, vectors[20:21]]).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = [f"group{number}" for number in groups] + ["group2"]
    labels[3] = "group1"
    pictures = [thumbnail(draws.integers(0, 256, (8, 8, 3)).repeat(6, 0).repeat(6, 1).astype(np.uint8)) for _ in groups]
    pictures.append(pictures[20])
    Change(index).append([Row(-1, f"/x/{at}.png", labels[at]) for at in range(31)], vectors, pictures)
    return index


def stripes(colour: tuple[int, int, int]) -> Any:
    """Stripes of one colour on black."""
    bright = (np.arange(48) // 6 % 2)[:, None, None] * np.ones((48, 48, 1))
    return (bright * colour).astype(np.uint8)


def test_recall_and_neighbours_are_those_of_a_plain_loop(folder: Path) -> None:
    index = Index.open(folder)
    found = survey(index)
    numbers, vectors = index.vectors()
    labels = {row.id: row.label for row in index.rows()}
    right: dict[str, list[bool]] = {}
    for place, number in enumerate(numbers.tolist()):
        cosines = {
            other: float(vectors[place] @ vectors[at]) for at, other in enumerate(numbers.tolist()) if at != place
        }
        order = sorted(cosines, key=lambda other: -cosines[other])
        assert found.near[place, 0] == order[0]
        assert found.likeness[place].tolist() == pytest.approx([cosines[other] for other in order[:10]], abs=1e-5)
        if labels[number]:
            right.setdefault(labels[number], []).append(labels[order[0]] == labels[number])
    assert found.recall == pytest.approx({label: sum(tally) / len(tally) for label, tally in right.items()})
    assert found.whole


def test_planted_faults_are_found(planted: Index) -> None:
    found = survey(planted)
    assert [(int(found.asked[place]), label) for place, label, _ in found.doubtful(10)] == [(3, "group0")]
    assert [pair[:2] for pair in doubles(planted, found)] == [(20, 30)]
    assert int(found.asked[found.worst(1)[0]]) == 3


def test_pictures_that_the_network_does_not_tell_apart_are_not_the_same(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i.index", untrained())
    yellow, green, plain = stripes((230, 220, 30)), stripes((30, 220, 40)), np.full((48, 48, 3), 200, np.uint8)
    bright = (yellow * 0.8 + 20).astype(np.uint8)
    pictures = [yellow, green, yellow.swapaxes(0, 1), bright, plain, plain, plain - 150]
    rows = [Row(-1, f"/x/{at}.png", "a") for at in range(len(pictures))]
    Change(index).append(rows, np.tile(np.eye(1, 16, dtype=np.float32), (7, 1)), [thumbnail(each) for each in pictures])
    found = survey(index)
    assert len(found.close()) == 21
    assert {pair[:2] for pair in doubles(index, found)} == {(0, 3), (4, 5)}
    assert len(found.close(5)) == 5


def test_a_sample_of_many(planted: Index) -> None:
    found = survey(planted, most=7)
    assert len(found.asked) == 7 and not found.whole and (np.diff(found.asked) > 0).all()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_hardly_any_images(tmp_path: Path, count: int) -> None:
    index = Index.create(tmp_path / "i.index", untrained())
    if count:
        vectors = np.eye(16, dtype=np.float32)[:count]
        Change(index).append([Row(-1, f"/x/{at}.png", "a") for at in range(count)], vectors, [b"x"] * count)
    found = survey(index)
    assert len(found.asked) == count and doubles(index, found) == [] and found.doubtful(5) == []
    assert found.recall == ({} if not count else {"a": 1.0 if count == 2 else 0.0})


def test_through_the_server(client: Any, folder: Path) -> None:
    whole = survey(Index.open(folder))
    assert client.get("/api/recall").json()["recall"] == pytest.approx(whole.recall)
    worst = client.get("/api/worst", params={"count": 3}).json()
    failed = len(whole.worst(100))
    assert worst["asked"] == 48 and worst["failed"] == failed and len(worst["queries"]) == min(3, failed)
    for query in worst["queries"]:
        assert query["hits"][0]["right"] is not True
    assert set(client.get("/api/doubts").json()) == {"doubtful", "doubles", "asked", "whole"}

"""Approximate search: its measured recall is true, and it never speaks for another state of the index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearkin.cli import main
from nearkin.index import Index
from nearkin.index import segment as segments
from nearkin.index.approximate import Approximate, build
from nearkin.index.manifest import Part
from nearkin.index.rows import Row
from nearkin.trained import Trained

pytest.importorskip("faiss", reason="faiss is not installed")


def filled(folder: Path, trained: Trained, count: int) -> Index:
    """An index of vectors without pictures, quicker to make than from images."""
    made = Index.create(folder, trained)
    random = np.random.default_rng(0)
    vectors = random.normal(size=(count // 8 + 1, 8))[np.arange(count) % (count // 8 + 1)] + 0.4 * random.normal(
        size=(count, 8)
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [Row(number + 5, f"/{number}.png", f"kind{number % 3}") for number in range(count)]
    sums = segments.write(folder / "segments" / "000000", vectors.astype(np.float32), rows, [b""] * count)
    made.manifest.with_part(Part("000000", count, sums), count + 5).write(folder)
    made.reload()
    return made


def test_the_recall_it_says_is_the_recall_it_has(tmp_path: Path, trained: Trained) -> None:
    index = filled(tmp_path / "i", trained, 3000)
    quality = build(index, least=0.9)
    assert 0.9 <= quality.recall <= 1 and quality.vectors == 3000 and quality.milliseconds > 0
    graph = Approximate.open(index)
    assert graph is not None
    queries = index.vectors()[1][::7]
    found, scores = graph.nearest(queries, 10)
    truth, cosines = index.nearest(queries, 10)
    share = np.mean([len(set(one) & set(two)) / 10 for one, two in zip(found, truth, strict=True)])
    assert share == pytest.approx(quality.recall, abs=0.05)
    same = found[:, 0] == truth[:, 0]
    np.testing.assert_allclose(scores[same, 0], cosines[same, 0], atol=1e-5)


def test_after_a_change_search_is_exact_until_it_is_built_again(tmp_path: Path, trained: Trained) -> None:
    index = filled(tmp_path / "i", trained, 200)
    build(index)
    index.remove(7)
    assert Approximate.open(index) is None
    build(index)
    graph = Approximate.open(index)
    assert graph is not None and 7 not in graph.nearest(index.vectors()[1], 200)[0]


def test_the_command_prints_what_it_is_worth(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    index = filled(tmp_path / "i", trained, 300)
    assert main(["index", "approximate", str(index.folder)]) == 0
    assert "of the true ten nearest" in capsys.readouterr().out
    assert main(["index", "search", str(index.folder), "9", "--approximate", "-k", "3"]) == 0
    assert "approximate search" in capsys.readouterr().out
    index.remove(9)
    assert main(["index", "search", str(index.folder), "10", "--approximate"]) == 2
    assert "must be built for the index as it is now" in capsys.readouterr().err


def test_an_empty_index_has_no_neighbours(tmp_path: Path, trained: Trained) -> None:
    with pytest.raises(ValueError, match="index must hold at least two images, got 0"):
        build(Index.create(tmp_path / "i", trained))


def test_a_graph_does_not_pass_over_a_label_in_silence(tmp_path: Path, trained: Trained) -> None:
    index = filled(tmp_path / "i", trained, 200)
    build(index)
    graph, vector = Approximate.open(index), index.vectors()[1][0]
    assert len(index.search(vector, 3, graph=graph)) == 3
    with pytest.raises(
        ValueError, match="graph knows no label and looks once only, got label 'kind1'; leave out graph"
    ):
        index.search(vector, 3, label="kind1", graph=graph)
    with pytest.raises(ValueError, match="got again 'expansion'"):
        index.search(vector, 3, again="expansion", graph=graph)


@pytest.mark.parametrize(
    ("flag", "came"), [("--label kind1", "label 'kind1'"), ("--again expansion", "again 'expansion'")]
)
def test_the_command_names_what_no_graph_knows(
    tmp_path: Path, trained: Trained, flag: str, came: str, capsys: pytest.CaptureFixture[str]
) -> None:
    index = filled(tmp_path / "i", trained, 20)
    assert main(["index", "search", str(index.folder), "9", "--approximate", *flag.split()]) == 2
    sentence = (
        f"search: approximate knows no label and looks once only, got {came}; "
        "leave out approximate to search every vector."
    )
    assert sentence in capsys.readouterr().err

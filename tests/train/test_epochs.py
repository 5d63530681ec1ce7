"""How the embedding moved, kept epoch by epoch: which vectors, by whom, and that a resumed run keeps the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nearkin.distributed import Ranks
from nearkin.train import epochs, prepare
from nearkin.train.folder import RunFolder
from nearkin.train.loop import train
from nearkin.train.measure import embed
from nearkin.train.restore import restore
from nearkin.train.screen import Silent
from tests.train.runs import left, tiny, train_in_parts


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs")


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / epochs.FOLDER).iterdir()}


def recall(vectors: Any, labels: Any) -> float:
    """Recall@1 in plain loops."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    return float(np.mean([labels[row.argmax()] == own for row, own in zip(cosines, labels, strict=True)]))


def test_every_measured_epoch_is_kept_and_gives_its_recall(tmp_path: Path, packs: Path) -> None:
    settings = tiny(tmp_path / "run", packs, keep_embeddings=True)
    found = train(settings)
    kept = epochs.kept(tmp_path / "run")
    assert [one.path.name for one in kept] == ["0001.safetensors", "0003.safetensors", "0004.safetensors"]
    assert [one.moment.step for one in kept] == [8, 16, 20] and {one.images for one in kept} == {"test"}
    test = prepare.test_pack(settings, Silent())
    said = {record["epoch"]: record["recall@1"] for record in RunFolder(tmp_path / "run").records("evaluate")}
    said[4] = found["recall@1"]
    for one in kept:
        vectors = one.vectors()
        assert vectors.shape == (len(test), 8) and vectors.dtype == np.float32
        assert recall(vectors.astype(np.float64), test.labels) == pytest.approx(said[one.moment.epoch], abs=0.07)
    _, model = restore(tmp_path / "run", torch.device("cpu"))
    feed = prepare.test_feed(settings, model, test, torch.device("cpu"))
    wanted = embed(model, feed, Ranks(), settings, torch.device("cpu")).numpy()
    np.testing.assert_allclose(kept[-1].vectors(), wanted, atol=1e-3)
    assert (tmp_path / "run" / "epochs" / "0004.safetensors").stat().st_size < len(test) * 8 * 2 + 400


def test_nothing_is_kept_unless_asked_and_the_run_is_the_same(tmp_path: Path, packs: Path) -> None:
    with_, without = tiny(tmp_path / "with", packs, keep_embeddings=True), tiny(tmp_path / "without", packs)
    assert with_.digest == without.digest
    train(with_)
    train(without)
    assert left(tmp_path / "with") == left(tmp_path / "without")
    assert not (tmp_path / "without" / epochs.FOLDER).exists()


@pytest.mark.parametrize(
    ("changes", "images"),
    [({}, "validation"), ({"audit": True}, "test"), ({"test": False}, "validation")],
)
def test_the_test_set_is_kept_only_where_it_is_measured(
    tmp_path: Path, packs: Path, changes: dict[str, Any], images: str
) -> None:
    protocol: dict[str, Any] = {"protocol": "fixed_validation", "ratio": 0.6, "evaluate_every": 1, "epochs": 2}
    settings = tiny(tmp_path / "run", packs, keep_embeddings=True, **protocol, **changes)
    train(settings)
    kept = epochs.kept(tmp_path / "run")
    assert [(one.moment.epoch, one.images) for one in kept] == [(0, images), (1, images)]
    known, test = prepare.packs(settings, Ranks(), Silent())
    validating = prepare.parts(settings, known)[1]
    assert test is not None and validating is not None and len(test) != len(validating)
    assert len(kept[0].vectors()) == len(test if images == "test" else validating)


@pytest.mark.parametrize("changes", [{}, {"protocol": "test_feedback", "iterations": 17}])
def test_a_resumed_run_keeps_the_same(
    tmp_path: Path, packs: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    same: dict[str, Any] = {"keep_embeddings": True, "evaluate_every": 1, **changes}
    train(tiny(tmp_path / "whole", packs, **same))
    settings = tiny(tmp_path / "parts", packs, checkpoint_every=1e6, **same)  # goes back to the start every time
    train_in_parts(settings, (3, 8, 13), monkeypatch)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    train(tiny(tmp_path / "whole", packs, **same), resume=True)  # finished: measured again, the same is left
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_what_lies_after_the_step_gone_back_to_is_dropped(tmp_path: Path) -> None:
    for epoch in range(3):
        epochs.write(tmp_path, epochs.Moment(epoch, 4 * epoch + 4), "test", torch.ones(3, 2))
    (tmp_path / "epochs" / "0007.safetensors").write_bytes(b"torn")
    (tmp_path / "epochs" / "places.safetensors").write_bytes(b"of another")
    epochs.forget(tmp_path, 8)
    assert sorted(contents(tmp_path)) == ["0000.safetensors", "0001.safetensors", "places.safetensors"]
    assert [one.moment.epoch for one in epochs.kept(tmp_path)] == [0, 1]
    assert epochs.kept(tmp_path / "nowhere") == []


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / epochs.FOLDER).write_text("in the way")
    with pytest.raises(
        OSError, match=r"the vectors of epoch 3 could not be written to .*0003.safetensors: .*; free some"
    ):
        epochs.write(tmp_path, epochs.Moment(3, 16), "test", torch.ones(3, 2))

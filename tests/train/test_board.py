"""What TensorBoard is shown, read back as it reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearkin.train.board import Board
from nearkin.train.folder import RunFolder
from nearkin.train.loop import train
from tests.train.runs import tiny

RECORDS = [
    {"kind": "step", "step": 1, "loss": 0.5},
    {"kind": "evaluate", "step": 2, "epoch": 0, "recall@1": 0.25, "seconds": 3.0},
    {"kind": "test", "step": 2, "epoch": 0, "protocol": "any", "recall@1": 0.75},
]


def shown(folder: Path) -> dict[str, list[float]]:
    """The values of every tag."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard")
    found = reader.EventAccumulator(str(folder / "tensorboard"))
    found.Reload()
    return {tag: [event.value for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


@pytest.mark.parametrize(("protocol", "word"), [("test_feedback", " (test_feedback)"), ("last_epoch", "")])
def test_the_word_is_in_the_tags_of_a_test_set_that_chooses(tmp_path: Path, protocol: str, word: str) -> None:
    board = Board(tmp_path, True, 0, protocol)
    board.write(RECORDS)
    board.close()
    assert shown(tmp_path) == {"step/loss": [0.5], f"evaluate{word}/recall@1": [0.25], f"test{word}/recall@1": [0.75]}


def test_a_run_writes_its_protocol_there(tmp_path: Path) -> None:
    made = tiny(tmp_path / "run", tmp_path / "packs", protocol="test_feedback", epochs=2, tensorboard=True)
    train(made)
    found = shown(tmp_path / "run")
    measured = [record["recall@1"] for record in RunFolder(tmp_path / "run").records("evaluate")]
    assert found["evaluate (test_feedback)/recall@1"] == pytest.approx(measured)
    assert "test (test_feedback)/recall@1" in found
    assert not any(tag.startswith(("evaluate/", "test/")) for tag in found)

"""Checkpoints: whole or not there, checked, without pickle."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nearkin import checkpoint


def save(folder: Path, step: int) -> Path:
    tensors = {"model": {"a.weight": torch.full((3, 2), float(step)), "b": torch.arange(step)}}
    return checkpoint.save(folder, step, tensors, {"epoch": step // 2})


def test_what_is_saved_comes_back_and_two_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save(tmp_path, step)
    assert checkpoint.steps(tmp_path) == [2, 3]
    found = checkpoint.load(tmp_path)
    assert found is not None and (found.step, found.facts) == (3, {"epoch": 1})
    assert found.tensors["model"]["a.weight"].equal(torch.full((3, 2), 3.0))
    assert found.tensors["model"]["b"].dtype == torch.int64
    older = checkpoint.load(tmp_path, 2)
    assert older is not None and older.step == 2
    assert checkpoint.load(tmp_path / "nothing") is None


@pytest.mark.parametrize("harm", ["flip", "cut", "remove"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, harm: str) -> None:
    save(tmp_path, 1)
    path = save(tmp_path, 2) / "model.safetensors"
    content = bytearray(path.read_bytes())
    if harm == "flip":
        content[-1] ^= 1
    path.write_bytes(content[: len(content) // 2] if harm == "cut" else content)
    if harm == "remove":
        path.unlink()
    found = checkpoint.load(tmp_path)
    assert found is not None and found.step == 1
    (tmp_path / "00000001" / "state.json").write_text("{")
    with pytest.raises(ValueError, match="must hold a whole checkpoint, got only damaged ones"):
        checkpoint.load(tmp_path)


def test_tensors_that_share_memory_are_saved_whole(tmp_path: Path) -> None:
    base = torch.arange(6.0).view(2, 3)
    checkpoint.save(tmp_path, 1, {"model": {"base": base, "turned": base.T, "row": base[1]}}, {})
    found = checkpoint.load(tmp_path)
    assert found is not None and found.tensors["model"]["turned"].equal(base.T)


def test_a_killed_writer_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    """The writer is killed between writing the files and giving them their name."""
    save(tmp_path, 1)
    code = (
        "import os, signal, sys, torch\n"
        "from pathlib import Path\n"
        "from nearkin import checkpoint\n"
        "checkpoint.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"checkpoint.save(Path({str(tmp_path)!r}), 2, {{'model': {{'a': torch.ones(9)}}}}, {{}})\n"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    assert any(path.name.startswith(".writing") for path in tmp_path.iterdir())
    found = checkpoint.load(tmp_path)
    assert found is not None and found.step == 1
    save(tmp_path, 3)
    assert not any(path.name.startswith(".writing") for path in tmp_path.iterdir())


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="could not be written: No space left on device; free some space."):
        save(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]


def test_replace_shows_the_old_content_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    checkpoint.replace(path, b"1")
    checkpoint.replace(path, b"22")
    assert json.loads(path.read_bytes()) == 22 and len(list(tmp_path.iterdir())) == 1


def refuse(number: int) -> Callable[..., None]:
    """A function of the system that refuses, with the name of a temporary file in its error."""

    def refused(*args: object, **options: object) -> None:
        raise OSError(number, os.strerror(number), ".facts.json-1200")

    return refused


def test_a_file_that_cannot_be_written_is_named_as_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.json"
    for number, remedy in ((errno.EACCES, "choose another place."), (errno.ENOSPC, "free some space.")):
        monkeypatch.setattr(os, "replace", refuse(number))
        with pytest.raises(OSError) as caught:
            checkpoint.replace(path, b"1")
        reason = os.strerror(number)
        assert str(caught.value) == f"{path} must be a file that can be written, got a refusal ({reason}); {remedy}"
        # As it comes back from a process that works for this one.
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_place_is_looked_at_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.check_file("json", tmp_path / "facts.json")
    checkpoint.make_folder("out", tmp_path / "a" / "b")
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b"]
    with pytest.raises(ValueError, match="^json must be a file, got '.*', which is a folder; add a name to it.$"):
        checkpoint.check_file("json", tmp_path)
    with pytest.raises(ValueError, match="^json must lie in a folder that exists, got '.*c/x'; make '.*c' first.$"):
        checkpoint.check_file("json", tmp_path / "c" / "x")
    monkeypatch.setattr(Path, "touch", refuse(errno.EACCES))
    with pytest.raises(OSError, match=r"facts.json must be a file that can be written, got a refusal \(Permission"):
        checkpoint.check_file("json", tmp_path / "facts.json")
    with pytest.raises(
        ValueError, match=r"^out must be a folder that can be written, got '.*b' \(Permission denied\);"
    ):
        checkpoint.make_folder("out", tmp_path / "b")


@pytest.mark.parametrize(
    "words",
    [
        "eval run --json {place}",
        "embed run images --out {place}.npy",
        "data check images --json {place}",
        "tournament results --svg {place}.svg",
        "published --csv {place}.csv",
        "index search my.index photo.png --picture {place}.png",
    ],
)
def test_no_work_is_done_for_a_file_that_cannot_be_written(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nearkin.cli import main

    monkeypatch.setattr(Path, "touch", refuse(errno.EACCES))
    assert main(words.format(place=tmp_path / "found").split()) == 2  # what is to be read is not even looked for
    assert f"{tmp_path / 'found'}" in (said := capsys.readouterr().err) and "must be a file that can be written" in said


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD])
def test_an_optimiser_goes_on_to_the_bit(tmp_path: Path, kind: type[torch.optim.Optimizer]) -> None:
    def made() -> tuple[torch.nn.Linear, torch.optim.Optimizer]:
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2)
        options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        groups = [{"params": [layer.weight], "name": "w", "peak": 1e-2}, {"params": [layer.bias], "lr": 1e-3}]
        return layer, kind(groups, lr=1e-2, weight_decay=1e-2, **options)  # type: ignore[call-arg]

    def steps(layer: torch.nn.Linear, optimizer: torch.optim.Optimizer, count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            layer(torch.ones(4, 3)).square().sum().backward()
            optimizer.step()

    straight, one = made()
    steps(straight, one, 7)
    first, two = made()
    steps(first, two, 3)
    moments, groups = checkpoint.pack_optimizer(two)
    checkpoint.save(tmp_path, 3, {"model": first.state_dict(), "optimizer": moments}, {"groups": groups})
    found = checkpoint.load(tmp_path)
    assert found is not None
    second, three = made()
    second.load_state_dict(found.tensors["model"])
    checkpoint.unpack_optimizer(three, found.tensors["optimizer"], found.facts["groups"])
    steps(second, three, 4)
    assert second.weight.equal(straight.weight) and second.bias.equal(straight.bias)
    assert three.param_groups[0]["name"] == "w"
    with pytest.raises(ValueError, match="optimiser must have 2 groups, got 1"):
        checkpoint.unpack_optimizer(three, {}, groups[:1])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("index search my.index photo.png --picture s.txt", "picture must end in .png, got 's.txt'; rename it."),
        ("tournament results --svg t.txt", "svg must end in .svg, got 't.txt'; rename it."),
    ],
)
def test_the_ending_of_a_file_must_be_that_of_its_format(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from nearkin.cli import main

    assert main(words.split()) == 2
    assert capsys.readouterr().err.strip().endswith(sentence)

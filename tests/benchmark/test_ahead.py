"""What every run of a benchmark would meet is said before the first one starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nearkin import results
from nearkin.benchmark import grid as grids
from nearkin.cli import main
from tests.index.conftest import draw


def grid(folder: Path, *roots: str, more: str = "", settings: str = "") -> Path:
    """A grid of two losses over folders of images."""
    data = ", ".join(f'{{data = "folder", root = "{root}"{more}}}' for root in roots)
    path = folder / "grid.toml"
    path.write_text(
        f'losses = ["margin", "triplet"]\ndata = [{data}]\n'
        'networks = [{network = "small", network_settings = {width = 4}}]\nprotocols = ["last_epoch"]\n'
        f"[settings]\nepochs = 1\nsize = 16\nbatch = 8\nimages = 2\n{settings}\n"
    )
    return path


def drawn(folder: Path, classes: int, each: int = 3) -> None:
    for number in range(classes * each):
        draw(folder / f"kind{number // each}" / f"{number}.png", number)


def test_what_is_odd_about_data_is_said_once_for_each_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn(tmp_path / "photos", 6)
    drawn(tmp_path / "others", 6)
    for number in (1, 2):
        (tmp_path / "photos" / "kind0" / f"{number}.png").unlink()
    words = ["bench", str(grid(tmp_path, "photos", "others")), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    shown = capsys.readouterr().out
    said = "note: photos: 1 training class has one image (kind0): it forms no positive pair.\n"
    assert shown.count("note:") == 1 and shown.startswith(said)
    assert main(words) == 0
    assert "note:" not in capsys.readouterr().out  # nothing is left to do


def test_images_that_cannot_be_read_are_told_of_once_and_in_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn(tmp_path / "photos", 6)
    (tmp_path / "photos" / "kind0" / "1.png").write_bytes(b"no picture")
    out = tmp_path / "out"
    assert main(["bench", str(grid(tmp_path, "photos")), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    said = f"note: photos: left out 1 image that cannot be read: {tmp_path / 'photos' / 'kind0' / '1.png'}: "
    assert shown.count(said) == 1 and shown.index(said) < shown.index("[1/2]")
    assert [result.left_out for result in results.read(out)] == [1, 1]
    file = out / results.FILE
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "left_out"}) + "\n" for line in lines))
    assert main(["bench", str(tmp_path / "grid.toml"), "--out", str(out)]) == 0  # results of an earlier version
    assert [result.left_out for result in results.read(out)] == [1, 1]
    capsys.readouterr()
    assert main(["tournament", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Left out, since they cannot be read: 1 image of photos; nearkin data check names them." in shown


@pytest.mark.parametrize(
    ("classes", "more", "settings", "remedy"),
    [
        (6, "", 'protocol = "fixed_validation"\nratio = 0.4', "raise ratio"),
        (2, "", "", 'give data_settings = {split = "all"} in its entry of data'),
        (2, ", data_settings = {test_share = 0.5}", "", 'give data_settings = {split = "all"} in its entry of data'),
    ],
)
def test_one_class_to_train_on_is_said_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], classes: int, more: str, settings: str, remedy: str
) -> None:
    drawn(tmp_path / "photos", classes)
    path = grid(tmp_path, "photos", more=more, settings=settings)
    if settings:
        path.write_text(path.read_text().replace('protocols = ["last_epoch"]\n', ""))
    out = tmp_path / "out"
    assert main(["bench", str(path), "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"nearkin bench: photos: the training images must be of at least 2 classes, got 1; add classes, or {remedy}.\n"
    )
    assert not out.exists()


def test_runs_that_wait_for_their_retry_are_looked_at_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn(tmp_path / "photos", 6)
    path, out = grid(tmp_path, "photos"), tmp_path / "out"
    read = grids.read(path)
    for job in read.jobs:
        job.save(out)
        job.note_failure(out, "no room")
    (tmp_path / "photos").rename(tmp_path / "moved")
    words = ["bench", str(path), "--out", str(out)]
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("nearkin bench: photos: ")
    assert [len(job.failures(out)) for job in read.jobs] == [1, 1]
    for job in read.jobs:  # given up, so that nothing is left to do
        results.append(out / results.FILE, job.result(out))
    assert main(words) == 1
    assert main([*words, "--retry-failed"]) == 2
    assert [len(job.failures(out)) for job in read.jobs] == [1, 1]

"""What every run of a benchmark would meet is said before the first one starts."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch

from nearkin import data, models, results
from nearkin.benchmark import ahead
from nearkin.benchmark import grid as grids
from nearkin.cli import main
from nearkin.train import before
from nearkin.train.settings import Train
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


TWO = "the classes kept back to validate must be at least two, one of them with two images, got"


@pytest.mark.parametrize(
    ("classes", "each", "chooses", "sentence"),
    [
        (12, 3, "fixed_validation", f"{TWO} 1 with at most 3; add ratio=0.7 to --settings, or add classes or images."),
        (6, 3, "fixed_validation", f"{TWO} 1 with at most 3; add protocol=last_epoch to --settings, or add classes"),
        (12, 3, "cross_validation", f"{TWO} 1 with at most 3; add folds=3 to --settings, or add classes or images."),
    ],
)
def test_too_few_classes_to_validate_says_what_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], classes: int, each: int, chooses: str, sentence: str
) -> None:
    """The test keeps half of the classes; a dry run says it too, below the runs."""
    drawn(tmp_path / "photos", classes, each)
    path = grid(tmp_path, "photos", settings="ratio = 0.9\nfolds = 6")
    path.write_text(path.read_text().replace("last_epoch", chooses))
    for more in ((), ("--dry-run",)):
        assert main(["bench", str(path), "--out", str(tmp_path / "out"), *more]) == 2
        said = capsys.readouterr()
        assert said.err.startswith(f"nearkin bench: photos: {sentence}") and said.err.count("\n") == 1
        assert ("2 runs" in said.out or "12 runs" in said.out) == bool(more)
    remedy = sentence.split("; add ")[1].split(" ")[0]
    words = ["bench", str(path), "--out", str(tmp_path / "out"), "--dry-run", "--settings"]
    assert main([*words, remedy]) == 0


@pytest.mark.parametrize(
    ("classes", "remedy"),
    [
        (24, "add ratio=0.6 to --settings to keep 5 back"),
        (16, "add protocol=last_epoch to --settings to choose none"),
    ],
)
def test_few_classes_to_choose_an_epoch_by_are_noted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], classes: int, remedy: str
) -> None:
    drawn(tmp_path / "photos", classes, 2)
    words = ["bench", str(grid(tmp_path, "photos")), "--out", str(tmp_path / "out"), "--dry-run", "--settings"]
    assert main([*words, "protocol=fixed_validation", "ratio=0.75"]) == 0
    kept = {24: 3, 16: 2}[classes]
    assert capsys.readouterr().out.split("note: ")[1:] == [
        f"photos: fixed_validation keeps {kept} classes back to validate, too few to choose an epoch by; {remedy}, or add "
        f"classes.\n"
    ]
    assert main([*words, "protocol=cross_validation", "folds=4"]) == 0
    assert capsys.readouterr().out.count("note: photos: cross_validation keeps") == 1
    assert main([*words, "protocol=fixed_validation", "ratio=0.35"]) == 0
    assert "note:" not in capsys.readouterr().out


TINY = """
losses = ["margin", {loss = "contrastive", lr = 1e-4}, "triplet"]
data = [{data = "glyphs", data_settings = {classes = 20, images = 6}}]
networks = [{network = "small", network_settings = {width = 4}}]
dims = [8]
seeds = [0, 1, 2]
[settings]
side = 0
size = 28
resize = 32
device = "cpu"
"""
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
NO_TIMM = pytest.mark.skipif(importlib.util.find_spec("timm") is not None, reason="timm is there")
NONSENSE = '"timm:nonsense"'
SMALL, RESNET = '"small", network_settings = {width = 4}', '"resnet18"'


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "side = 0",
            'pooling = "max"',
            "small: pooling 'max' is not known; choose one of gap, gap+gmp, gem, gmp, none.",
        ),
        ("side = 0", 'levels = "nope"', "small: level 'nope' is not known; choose one of stage1, stage2, stage3."),
        (
            'device = "cpu"',
            'device = "gpu"',
            "device must be auto, cpu, cuda or cuda:N, got 'gpu'; choose one of these.",
        ),
        pytest.param(
            'device = "cpu"',
            'device = "cuda"',
            "device 'cuda' needs a CUDA device, got none; choose cpu.",
            marks=NO_GPU,
        ),
        ("side = 0", "test_size = 1", "test_size must be a side of images that small takes, got 1: "),
        (
            "size = 28",
            "size = 28\nchunk = 4\nfrozen_batch_norm = false",
            "chunk needs frozen batch norm, got backbone.smooth.0 in training mode, whose result depends on the images of",
        ),
        ("width = 4", "width = -1", "small: width must be a whole number at least 1, got -1; change width."),
        pytest.param(
            SMALL,
            NONSENSE,
            "timm must be installed for timm:nonsense, got none; run pip install 'nearkin[timm]'.",
            marks=NO_TIMM,
        ),
        (
            f"{SMALL}}}]\ndims = [8]\nseeds = [0, 1, 2]\n[settings]\nside = 0\nsize = 28",
            f"{RESNET}}}]\n[settings]\nside = 0\nsize = 16\ntest_size = 32",
            "size must be a side of images that resnet18 takes, got 16: 'images must have shape",
        ),
        (
            '"triplet"]',
            '{loss = "softmax", memory = 100}]',
            "loss must be a pair loss, got Softmax: a memory adds columns of samples; proxy losses have no such columns.",
        ),
        (
            "side = 0",
            'sampler = "pk"\nbatch = 9',
            "glyphs: batch must hold at least two classes of 5 images, got 9; raise batch to 10 or lower images.",
        ),
        (
            "side = 0",
            'sampler = "random"\nbatch = 1',
            "glyphs: batch must be at least two images, which a loss compares, got 1; raise batch.",
        ),
    ],
)
def test_a_grid_that_cannot_work_is_one_sentence_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    assert old in TINY
    (tmp_path / "grid.toml").write_text(TINY.replace(old, new))
    out = tmp_path / "out"
    assert main(["bench", str(tmp_path / "grid.toml"), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"nearkin bench: {sentence}") and said.count("\n") == 1
    assert not out.exists()


def test_a_corrected_device_is_not_held_against_the_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, words = tmp_path / "grid.toml", ["bench", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out")]
    text = TINY.replace("seeds = [0, 1, 2]", "seeds = [0]") + "epochs = 1\ntensorboard = false\nthreads = 1\n"
    path.write_text(text.replace('"cpu"', '"gpu"') + f'packs = "{tmp_path / "packs"}"\n')
    assert main(words) == 2
    path.write_text(path.read_text().replace('"gpu"', '"cpu"'))
    assert main(words) == 0
    assert "3 of 3 runs done" in capsys.readouterr().out


def test_a_test_in_which_every_class_has_one_image_is_said_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn(tmp_path / "photos", 8, each=1)
    path, out = grid(tmp_path, "photos"), tmp_path / "out"
    assert main(["bench", str(path), "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        "nearkin bench: photos: the test images must give at least one query another image of its class to find, got none "
        "for 4 images of 4 classes; add images to the classes.\n"
    )
    assert not out.exists()


def test_a_network_is_made_once_for_all_runs_that_share_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[tuple[str, int]] = []
    monkeypatch.setattr(before, "check_network", lambda settings: made.append((settings.network, settings.size)))
    monkeypatch.setattr(data, "load", lambda *words, **settings: pytest.fail("no data is read"))
    text = TINY.replace(SMALL, f"{SMALL}}}, {{network = {RESNET}")
    jobs = grids.parse(text).jobs + grids.parse(text.replace("size = 28", "size = 32")).jobs
    ahead.check(jobs, tmp_path, here=False)
    assert made == [("small", 28), ("resnet18", 28), ("small", 32), ("resnet18", 32)]


def test_no_weights_are_read_to_see_whether_a_network_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"no weights")
    text = TINY.replace("width = 4}", 'width = 4}, weights = "w.safetensors"')
    assert ahead.check(grids.parse(text, folder=tmp_path).jobs, tmp_path) == []


def test_what_another_machine_has_is_not_looked_for_here(tmp_path: Path) -> None:
    """Runs of a Ray cluster that is there already: its devices, weights, images and libraries may be others."""
    text = TINY.replace('device = "cpu"', 'device = "cuda:7"')
    elsewhere = text.replace('"glyphs", data_settings = {classes = 20, images = 6}', '"cub200", root = "/nowhere"')
    for network in (SMALL, '"resnet18", size = 32, resize = 36, weights = "/nowhere.safetensors"', NONSENSE):
        if network != NONSENSE or importlib.util.find_spec("timm") is None:
            assert ahead.check(grids.parse(elsewhere.replace(SMALL, network)).jobs, tmp_path, here=False) == []
    with pytest.raises(ValueError, match="pooling 'max' is not known"):
        ahead.check(grids.parse(elsewhere.replace("side = 0", 'pooling = "max"')).jobs, tmp_path, here=False)


def test_a_network_that_cannot_be_made_of_shapes_alone_is_made_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the small ones are tried without numbers first; what is wrong the second try says."""
    places: list[str] = []

    def network(name: str, **settings: object) -> models.Backbone:
        places.append(torch.empty(0).device.type)
        if places[-1] == "meta" and name == "picky":
            raise RuntimeError("no numbers")
        if name == "broken":
            raise ValueError("timm must be able to make 'broken'")
        return models.MODELS["resnet18"].build(**settings)

    monkeypatch.setattr(models, "timm_network", network)
    before.check_network(Train(network="timm:fine", size=64))
    before.check_network(Train(network="timm:picky", size=64))
    with pytest.raises(ValueError, match="'broken'"):
        before.check_network(Train(network="timm:broken", size=64))
    assert places == ["meta", "meta", "cpu", "meta", "cpu"]
    with pytest.raises(ValueError, match="test_size must be a side of images that timm:fine takes, got 8"):
        before.check_network(Train(network="timm:fine", size=64, test_size=8))


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

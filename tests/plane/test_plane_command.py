"""The command: from image files to figure, measures and points; what is finished is not trained again; wrong input."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from nearkin import data
from nearkin.plane import rank
from nearkin.plane.command import Plane, run
from nearkin.plane.points import draw, points
from nearkin.plane.runs import LOSSES, PAPER, settings
from nearkin.train import loop
from nearkin.train.folder import RunFolder
from nearkin.train.restore import restore
from nearkin.train.screen import Silent
from tests.data.layouts import idx


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten classes that a few steps can tell apart: a bright bar at a height of its own, with noise."""
    root, generator = tmp_path_factory.mktemp("shapes"), np.random.default_rng(0)
    for part, count in (("train", 400), ("t10k", 200)):
        labels = np.arange(count) % 10
        images = generator.integers(0, 40, (count, 28, 28))
        for image, label in zip(images, labels, strict=True):
            image[2 * label + 4 : 2 * label + 7, generator.integers(3, 8) :] += 200
        idx(root / f"{part}-images-idx3-ubyte.gz", images)
        idx(root / f"{part}-labels-idx1-ubyte.gz", labels)
    return root


def tiny(root: Path, out: Path, **changes: Any) -> Plane:
    plain: dict[str, Any] = {
        "root": str(root),
        "out": str(out),
        "losses": "softmax,nra",
        "iterations": 12,
        "points": 150,
        "data_settings": {"check_counts": False},
        "packs": str(out.parent / "packs"),
        "device": "cpu",
        "threads": 1,
    }
    return Plane(**(plain | changes))


def trainings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, bool]]:
    """Loss, seed and whether resumed, of every training from here on."""
    seen: list[tuple[str, int, bool]] = []
    real = loop.train

    def train(settings: Any, *, resume: bool = False, screen: Any = None) -> dict[str, Any]:
        seen.append((settings.loss, settings.seed, resume))
        return real(settings, resume=resume, screen=screen)

    monkeypatch.setattr(loop, "train", train)
    return seen


def test_from_files_to_figure_and_not_twice(
    shapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = trainings(monkeypatch)
    out = tmp_path / "plane"
    assert run(tiny(shapes, out)) == 0
    assert seen == [("softmax", 0, False), ("nra", 0, False)]
    shown = capsys.readouterr().out
    assert "softmax cross-entropy" in shown and "NRA" in shown and str(out / "plane.svg") in shown
    first = json.loads((out / "plane.json").read_text())
    figure = (out / "plane.svg").read_text()
    ElementTree.fromstring(figure)
    for name in ("softmax", "nra"):
        [found] = first["losses"][name]
        assert f"mAP {100 * found['map']:.1f} %" in figure
        assert 0.1 < found["map"] <= 1 and len(found["radius"]) == 10
    # Nothing is trained again; another seed is, and joins.
    assert run(tiny(shapes, out, seeds=(0, 1))) == 0
    assert seen[2:] == [("softmax", 1, False), ("nra", 1, False)]
    both = json.loads((out / "plane.json").read_text())
    assert both["losses"]["nra"][0] == first["losses"]["nra"][0]
    assert [entry["seed"] for entry in both["losses"]["nra"]] == [0, 1]
    assert (out / "plane.svg").read_text() == figure
    assert "trained before" in capsys.readouterr().out
    # Other settings are another run.
    assert run(tiny(shapes, out, losses="softmax", iterations=13)) == 0
    assert seen[4:] == [("softmax", 0, False)]


def test_the_points_are_the_raw_output_of_the_network(shapes: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    out = tmp_path / "plane"
    run(tiny(shapes, out, losses="triplet"))
    saved = load_file(out / "points.safetensors")
    [folder] = (out / "runs").iterdir()
    _, model = restore(folder, torch.device("cpu"))
    rows = draw(150, 200, 0)
    packed = (shapes / "t10k-images-idx3-ubyte.gz").read_bytes()
    content = np.frombuffer(gzip.decompress(packed), np.uint8, offset=16)
    images = torch.tensor(content.reshape(200, 1, 28, 28)[rows]) / 255
    with torch.no_grad():
        expected = model(images)["stage2"]
    torch.testing.assert_close(saved["triplet"], expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(expected.norm(dim=1), torch.ones(150), atol=0.05)
    assert saved["labels"].tolist() == (torch.tensor(rows) % 10).tolist()
    [found] = json.loads((out / "plane.json").read_text())["losses"]["triplet"]
    assert found["map"] == pytest.approx(rank(expected, saved["labels"]).mean, abs=1e-6)
    put = points(folder, 150, 0, Silent(), device="cpu", packs=str(tmp_path / "packs"))
    pixels = images.flatten(1).double().numpy()
    for label in range(10):
        own = pixels[rows % 10 == label]
        assert float(put.variance[label]) == pytest.approx(float(own.var(0).sum()), rel=1e-4)


def test_what_was_interrupted_is_gone_on_with(shapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = trainings(monkeypatch)
    real, out = loop._Run._one_step, tmp_path / "plane"

    def one_step(self: Any, *args: Any) -> None:
        if self.step == 5:
            raise KeyboardInterrupt("stopped")
        real(self, *args)

    monkeypatch.setattr(loop._Run, "_one_step", one_step)
    with pytest.raises(KeyboardInterrupt, match=r"^stopped in nra, 1 of 1; the same command goes on from the last "):
        run(tiny(shapes, out, losses="nra"))
    monkeypatch.setattr(loop._Run, "_one_step", real)
    assert run(tiny(shapes, out, losses="nra")) == 0
    assert seen == [("nra", 0, False), ("nra", 0, True)]


def test_finished_runs_do_not_mind_that_the_data_moved(shapes: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "here", tmp_path / "there"
    shutil.copytree(shapes, first)
    run(tiny(first, tmp_path / "plane", losses="softmax"))
    before = (tmp_path / "plane" / "plane.svg").read_text()
    first.rename(second)
    assert run(tiny(second, tmp_path / "plane", losses="softmax")) == 0
    assert (tmp_path / "plane" / "plane.svg").read_text() == before


def test_a_run_that_diverges_says_so(shapes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tiny(shapes, tmp_path / "plane", losses="softmax", optimizer="sgd", lr=1e30)) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("nearkin plane: ") and "try a lower lr" in shown


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_learns(name: str, shapes: Path, tmp_path: Path) -> None:
    wanted = settings(
        name,
        root=str(shapes),
        out=str(tmp_path / "run"),
        iterations=60,
        data_settings={"check_counts": False},
        packs=str(tmp_path / "packs"),
        device="cpu",
        threads=1,
    )
    loop.train(wanted)
    steps = [record["loss"] for record in RunFolder(tmp_path / "run").records("step")]
    assert len(steps) == 60
    assert np.mean(steps[-10:]) < 0.9 * np.mean(steps[:5])


def test_the_settings_are_the_papers_where_it_gives_them() -> None:
    assert Plane().names == PAPER == ("softmax", "triplet", "lifted_structure", "nra")
    assert (Plane().iterations, Plane().points) == (20_000, 5_000)
    for name in PAPER:
        made = settings(name)
        assert (made.data, made.network, made.dim, made.iterations) == ("mnist", "digits", 2, 20_000)
        assert made.loss_settings.get("normalize") is (False if name in ("triplet", "lifted_structure") else None)
        assert made.loss_settings.get("margin") == (1.0 if name in ("triplet", "lifted_structure") else None)
    # What the losses share: all but themselves, their optimiser and batch, and these too where they are given.
    shared = [
        {**settings(name, optimizer="sgd", classes=5).identity(), "loss": "", "loss_settings": {}} for name in PAPER
    ]
    assert all(entry == shared[0] for entry in shared)
    for classes, images in ((2, 40), (3, 26), (4, 20), (10, 8)):
        made = settings("triplet", classes=classes)
        assert (made.batch, made.images) == (classes * images, images)
    assert {name: settings(name).images for name in PAPER} == dict.fromkeys(PAPER, 8) | {"nra": 20}
    assert {name: settings(name).optimizer for name in PAPER} == dict.fromkeys(PAPER, "adam") | {"nra": "sgd"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"losses": "softmax,nrs"}, "loss 'nrs' is not known; did you mean 'nra'?"),
        ({"losses": "nra,nra"}, "plane: losses must be at least one, each once, got ('nra', 'nra'); change losses."),
        ({"seeds": ()}, "plane: seeds must be at least one, each once, got (); change seeds."),
        ({"seeds": (1, 1)}, "plane: seeds must be at least one, each once, got (1, 1); change seeds."),
        (
            {"seeds": (-1,)},
            "plane: seeds must be a whole number at least 0 and at most 9223372036854775807, got -1; change seeds.",
        ),
        ({"points": 99}, "plane: points must be a whole number at least 100, got 99; change points."),
        ({"classes": 11}, "plane: classes must be a whole number at least 0 and at most 10, got 11; change classes."),
        (
            {"classes": 1},
            "plane: classes must be 0 or at least 2, since one digit alone has no negatives, got 1; change classes.",
        ),
        ({"lr": 0.0}, "plane: lr must be a finite number above 0, got 0.0; change lr."),
        (
            {"optimizer": "adamm"},
            "plane: optimizer must be 'own' or 'sgd' or 'adam' or 'adamw', got 'adamm'; choose one of these.",
        ),
        ({"out": ""}, "plane: out must be a folder, got ''; pass, for example, --out plane."),
    ],
)
def test_impossible_flags(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        Plane(**changes)
    assert str(raised.value) == message


def test_without_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as raised:
        run(Plane(out=str(tmp_path)))
    assert str(raised.value) == (
        "plane: root must be the folder of MNIST, got ''; fetch it with nearkin data get mnist."
    )
    with pytest.raises(ValueError, match=r"^mnist: "):
        run(tiny(tmp_path / "nowhere", tmp_path / "plane"))


def test_more_points_than_images(shapes: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as raised:
        run(tiny(shapes, tmp_path / "plane", losses="softmax", points=201))
    assert str(raised.value) == "plane: points must be at most the number of test images, 200, got 201; lower points."
    assert not (tmp_path / "plane").exists()  # said before anything was trained


def test_real_digits(tmp_path: Path) -> None:
    folder = os.environ.get("NEARKIN_TEST_DATA")
    if not folder:
        pytest.skip("needs MNIST: set NEARKIN_TEST_DATA to a folder that holds mnist")
    splits = data.load("mnist", Path(folder) / "mnist")
    for part, table, count in (("train", splits.train, 2000), ("t10k", splits.test, 600)):
        idx(tmp_path / "few" / f"{part}-images-idx3-ubyte.gz", np.asarray(table.images[:count]))
        idx(tmp_path / "few" / f"{part}-labels-idx1-ubyte.gz", table.labels[:count])
    out = tmp_path / "plane"
    assert run(tiny(tmp_path / "few", out, losses="lifted_structure", iterations=80, points=600)) == 0
    [found] = json.loads((out / "plane.json").read_text())["losses"]["lifted_structure"]
    assert found["map"] > 0.35  # chance is 0.1

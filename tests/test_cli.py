"""The command line, as a person meets it."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearkin import __version__, config, losses
from nearkin.cli import COMMANDS, main
from nearkin.train.settings import Train, resolve


def test_the_demonstration_runs_on_few_characters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["demo", "--steps", "3", "--classes", "12", "--images", "4", "--out", str(tmp_path / "demo")]
    assert main(words) == 0
    assert main(words) == 0  # an earlier demonstration is replaced
    shown = capsys.readouterr().out
    assert not list(tmp_path.glob(".*"))
    for word in (
        "R@1",
        "R@8",
        "MAP@R",
        "NMI",
        "raw pixels",
        "network, untrained",
        "network, trained",
        "24 images of 6 characters",
    ):
        assert word in shown


def test_the_demonstration_leaves_an_index_of_what_was_never_seen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from nearkin.data.glyphs import glyphs
    from nearkin.demo import INDEX, folder_name
    from nearkin.index import Index

    out = tmp_path / "two words"
    words = ["demo", "--steps", "2", "--classes", "8", "--images", "3", "--seed", "1", "--out", str(out)]
    assert main(words) == 0
    index = Index.open(out / INDEX)
    test = glyphs(classes=8, images=3, seed=1).test
    assert index.labels() == {folder_name(name): 3 for name in test.class_names}
    from PIL import Image

    for row in index.rows():
        drawn = np.asarray(Image.open(row.path))
        [label] = [at for at, name in enumerate(test.class_names) if folder_name(name) == row.label]
        own = test.images[test.labels == label]
        assert any(np.array_equal(drawn, image) for image in own)
    last = [line for line in capsys.readouterr().out.splitlines() if line.strip()][-1]
    assert shlex.split(last)[-4:] == ["serve", str(out / INDEX), "--run", str(out)]
    # As it stands, up to the server itself.
    asked = subprocess.run(
        [*shlex.split(last), "--host", "no such host", "--no-open"], capture_output=True, text=True, check=False
    )
    assert asked.returncode == 2 and "no such host" in asked.stderr


@pytest.mark.parametrize("moment", ["nearkin.demo.evaluation.evaluate", "nearkin.demo.write_images", "shutil.rmtree"])
def test_an_interrupted_demonstration_is_replaced(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nearkin.demo import INDEX, MARK
    from nearkin.index import Index

    def interrupted(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "demo"
    words = ["demo", "--steps", "2", "--classes", "8", "--images", "3", "--out", str(out)]
    assert main(words) == 0
    with monkeypatch.context() as patch:
        patch.setattr(moment, interrupted)
        assert main(words) == 130
    if (out / INDEX).exists():
        Index.open(out / INDEX).verify()
    assert main(words) == 0
    Index.open(out / INDEX).verify()
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    assert [path.name for path in out.glob(".*")] == [MARK]


@pytest.mark.parametrize("kind", ["images", "a run", "a demonstration with notes"])
def test_the_demonstration_removes_nothing_of_somebody_elses(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine"
    words = ["demo", "--steps", "2", "--classes", "8", "--images", "3", "--out", str(out)]
    if kind == "images":
        (out / "birds").mkdir(parents=True)
        (out / "birds" / "one.png").touch()
    elif kind == "a run":
        from nearkin.train.loop import train
        from tests.train.runs import tiny

        train(tiny(out, tmp_path / "packs"))
    else:
        assert main(words) == 0
        (out / "notes.txt").touch()
    before = sorted(out.rglob("*"))
    assert main(words) == 2
    assert "out must be a new folder, or an earlier demonstration with nothing else in it" in capsys.readouterr().err
    assert sorted(out.rglob("*")) == before


@pytest.mark.slow
def test_the_demonstration_learns(tmp_path: Path) -> None:
    """A short run already gains on characters never seen."""
    from nearkin.demo import Demo, rows

    found, images, classes, _ = rows(Demo(steps=60, classes=100, images=12, out=str(tmp_path / "demo")))
    assert (images, classes) == (600, 50)
    assert found["network, trained"]["recall@1"] > found["network, untrained"]["recall@1"] + 0.15
    assert found["network, trained"]["recall@1"] > found["raw pixels"]["recall@1"]


def test_an_interruption_while_torch_is_loaded_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise KeyboardInterrupt\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from nearkin.cli import entry; sys.argv[1:] = ['losses'];"
    )
    done = subprocess.run([sys.executable, "-c", code + "entry()"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "\nnearkin losses: interrupted.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["demmo"], "nearkin: command 'demmo' is not known; did you mean 'demo'?"),
        (["doctor", "images"], "nearkin: command 'doctor' is not known; did you mean 'data check'?"),
        (["demo", "--steps", "0"], "nearkin demo: steps must be a whole number at least 1, got 0; change steps."),
        (["demo", "--lr", "-1"], "nearkin demo: lr must be a finite number above 0, got -1.0; change lr."),
    ],
)
def test_an_error_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.strip() == sentence


@pytest.mark.parametrize("word", ["classes", "images"])
def test_bad_counts_are_named_and_nothing_is_lost(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["demo", "--steps", "2", "--classes", "8", "--images", "3", "--out", str(tmp_path / "demo")]
    assert main(words) == 0
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    assert main([*words, f"--{word}", "1"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"nearkin demo: {word} must be")
    assert "Traceback" not in shown
    assert sorted(tmp_path.rglob("*")) == before


def test_every_loss_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["losses"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == losses.names()


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
    for arguments, word in ((["--version"], __version__), (["demo", "--help"], "learning rate")):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert word in capsys.readouterr().out


def test_an_interruption_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nearkin.demo.run", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err.strip() == "nearkin demo: interrupted."


def test_it_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "nearkin", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"nearkin {__version__}"


@pytest.mark.parametrize("words", ["published", "published deep_dive 6", "published --loss ranked_list --data cub200"])
def test_published_results_are_shown(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 0
    assert len(capsys.readouterr().out.splitlines()) > 5


def test_a_source_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["published", "deep_dife"]) == 2
    assert "deep_dive" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "--epoks", "3"], "nearkin train: flag '--epoks' is not known; did you mean '--epochs'?\n"),
        (
            ["train", "--loss", "triplet", "--margin", "0.2"],
            "nearkin train: --margin is a setting of losses; write --loss-settings margin=VALUE.\n",
        ),
        (["train", "--lr=1", "--epoks=3"], "nearkin train: flag '--epoks' is not known; did you mean '--epochs'?\n"),
        (["train", "--epochs"], "nearkin train: argument --epochs: expected one argument; see nearkin train --help.\n"),
        (
            ["bench", "statuss", "bench/smoke"],
            "nearkin bench: command 'bench statuss' is not known; did you mean 'bench status'?\n",
        ),
        (["bench", "losses", "birds"], "nearkin bench: 'birds' was not expected; see nearkin bench --help.\n"),
        (["train", "birds"], "nearkin train: 'birds' was not expected; see nearkin train --help.\n"),
    ],
)
def test_a_mistake_in_a_flag_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", sentence)


@pytest.mark.parametrize(("command", "differs"), [("train", {}), ("tune", {"protocol": "fixed_validation"})])
def test_help_shows_the_defaults_that_a_run_gets(command: str, differs: dict[str, Any]) -> None:
    """Those of the dataclass are often not they: the recipe goes before them."""
    parser = argparse.ArgumentParser()
    config.add_flags(parser, COMMANDS[command][1]()[0])
    texts = {action.dest: action.help or "" for action in parser._actions}
    made = resolve({})
    for field in fields(Train):
        value = config.plain(differs.get(field.name, getattr(made, field.name)))
        if value not in ("", "{}") and texts[field.name] != argparse.SUPPRESS:
            assert re.search(rf"[(;] ?default: {re.escape(value)}(, by the recipe)?\)$", texts[field.name]), field.name
    assert "--crop-scale X [X ...]" in parser.format_help()


def test_flags_of_training_stand_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    for command, last in (("train", ["The command:"]), ("tune", ["The search:", "The command:"])):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: nearkin {command} [--FLAG VALUE ...]\n\n")
        headings = re.findall(r"^[A-Z].*:$", shown, re.M)
        assert headings == [
            "What to learn from:", "What chooses the epoch:", "The network:", "The loss:", "The batches:", "The pictures:",
            "The optimiser:", "Measuring:", "The machine:", *last,
        ]  # fmt: skip
        network = shown[shown.index("The network:") : shown.index("The loss:")]
        assert re.findall(r"^  --(?:\[no-\])?([\w-]+)", network, re.M) == [
            "network", "weights", "network-settings", "dim", "levels", "pooling", "head-scale", "frozen-batch-norm",
        ]  # fmt: skip


def test_choices_and_default_stand_apart_from_what_a_flag_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "numbers of the network; auto: bf16 on cuda (one of auto, float32, bf16, float64; default: auto)" in shown
    assert "unified_view, nra, proxy_anchor (default: default)" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("index search my.index x.png -k 0", "nearkin index search: k must be a whole number at least 1, got 0;"),
        ("data check . --each 0", "nearkin data check: each must be a whole number at least 1, got 0;"),
        ("train --dim 0", "nearkin train: dim must be a whole number at least 1, got 0;"),
    ],
)
def test_a_sentence_names_its_command_once(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith(sentence)

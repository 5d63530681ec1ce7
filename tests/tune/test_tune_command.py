"""nearkin tune as a person meets it."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from nearkin import cli, config, results
from nearkin.train.loop import _Run
from nearkin.train.settings import Train, resolve
from nearkin.tune import crew, files
from nearkin.tune.command import Command, looked_at, run
from nearkin.tune.settings import COMMAND
from nearkin.tune.study import FORMAT, JOURNAL
from tests.benchmark.test_ahead import drawn
from tests.train.runs import tiny
from tests.tune.stubs import install, peak

CLASSES = {"classes": 24, "images": 8}


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.COMMANDS, "tune", ("Search.", lambda: (Command, run)))


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs")


@pytest.fixture
def base(tmp_path: Path, packs: Path) -> str:
    """A file of settings for runs of a fraction of a second; it trains to the last epoch, as files do."""
    settings = tiny(tmp_path, packs, data_settings=CLASSES, ratio=0.6, evaluate_every=0, epochs=3, checkpoint_every=60)
    text = "".join(
        f"{line}\n" for line in config.dump(settings).splitlines() if line.split(" = ")[0] not in ("out", "loss")
    )
    (tmp_path / "base.toml").write_text(text)
    return str(tmp_path / "base.toml")


def tune(*words: object) -> int:
    return cli.main(["tune", *map(str, words)])


def test_images_that_cannot_be_read_are_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn(tmp_path / "photos", 12)
    (tmp_path / "photos" / "kind0" / "1.png").write_bytes(b"no picture")
    folder = {"data": "folder", "root": str(tmp_path / "photos"), "data_settings": {}, "protocol": "fixed_validation"}
    checksum, validating = looked_at(tiny(tmp_path / "run", tmp_path / "packs", ratio=0.6, **folder))
    assert checksum and validating >= 1
    assert "note: left out 1 image that cannot be read: " in capsys.readouterr().out


def test_two_losses_end_to_end(tmp_path: Path, base: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "study"
    words = ("--config", base, "--losses", "proxy_anchor,margin", "--trials", 3, "--study", folder)
    assert tune(*words) == 0
    shown = capsys.readouterr().out
    lines = files.read(folder / files.TRIALS)
    assert [line["loss"] for line in lines] == ["proxy_anchor", "margin"] * 3
    assert {line["status"] for line in lines} == {"done"}
    for line in lines:
        place = folder / "trials" / f"{line['loss']}-{line['number']}"
        measures = json.loads((place / "metrics.json").read_bytes())
        assert measures["validation"]["recall@1"] == line["value"] and measures["validation"]["epoch"] == line["epoch"]
        # The test set: neither measured, nor its answers kept, nor audited; checkpoints are gone.
        assert "recall@1" not in measures and measures["test_feedback"] is None
        assert sorted(path.name for path in place.iterdir()) == ["config.toml", "log.jsonl", "metrics.json"]
        assert not (place / results.QUERIES).exists()
        kinds = {json.loads(row)["kind"]: json.loads(row) for row in (place / "log.jsonl").read_text().splitlines()}
        assert "evaluate" not in kinds and "recall@1" not in kinds["test"]
    for loss in ("proxy_anchor", "margin"):
        own = [line for line in lines if line["loss"] == loss]
        top = max(own, key=lambda line: (line["value"], -line["number"]))
        path = files.best_path(folder, loss)
        assert f"{loss}" in shown and f"nearkin train --config {path}" in shown
        assert cli.main(["train", "--config", str(path), "--dry-run"]) == 0
        resolved = Train(**_toml(capsys.readouterr().out, tmp_path))
        tried = Train(**config.read(folder / "trials" / f"{loss}-{top['number']}" / "config.toml", Train))
        expected = tried.identity() | {"protocol": "last_epoch", "test": True}
        assert resolved.identity() == expected and resolved.out == f"runs/glyphs-{loss}-0"
        assert "validation classes" in path.read_text().splitlines()[1]
    assert "recall@1 is a validation figure, on 5 of the training classes" in shown
    assert "The test set was not looked at." in shown

    # The same again, and the folder alone: nothing is run, the table comes again.
    journal, table = (folder / JOURNAL).read_bytes(), shown[shown.index("loss   ") :]
    assert tune(*words) == 0 and capsys.readouterr().out == table
    assert tune("--study", folder) == 0 and capsys.readouterr().out == table
    assert (folder / JOURNAL).read_bytes() == journal
    assert tune("--study", folder, "--lr", "0.01") == 2
    assert "lr of proxy_anchor must stay 0.001 in the study" in capsys.readouterr().err


def test_one_who_stops_in_the_first_trial_is_not_told_that_it_was_kept(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_step(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_Run, "_one_step", one_step)
    assert tune("--config", base, "--loss", "margin", "--trials", 2, "--study", tmp_path / "study") == 130
    error = capsys.readouterr().err
    assert f"stopped before any of 2 trials ended; go on with nearkin tune --study {tmp_path}/study." in error


def _toml(text: str, folder: Path) -> dict[str, Any]:
    (folder / "found.toml").write_text(text)
    return config.read(folder / "found.toml", Train)


def test_a_stopped_trial_goes_on_to_the_same_figures(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--config", base, "--loss", "margin", "--trials", 2, "--epochs", 3, "--checkpoint-every", 0]
    assert tune(*words, "--study", tmp_path / "whole") == 0
    real, steps = _Run._one_step, []

    def one_step(self: Any, *args: Any) -> None:
        steps.append(self.step)
        if len(steps) == 12 + 7:  # in the second trial
            raise KeyboardInterrupt
        real(self, *args)

    monkeypatch.setattr(_Run, "_one_step", one_step)
    assert tune(*words, "--study", tmp_path / "parts") == 130
    error = capsys.readouterr().err
    assert f"stopped after 1 of 2 trials, all of them kept; go on with nearkin tune --study {tmp_path}/parts." in error
    capsys.readouterr()
    assert tune("--study", tmp_path / "parts") == 0
    shown = capsys.readouterr().out
    assert "margin  2 of 2, trial 3  " in shown  # as the folder of the trial and the table call it
    assert len(steps) == 2 * 12 + 1  # no step twice, but for the one that was stopped
    whole = files.read(tmp_path / "whole" / files.TRIALS)
    parts = [line for line in files.read(tmp_path / "parts" / files.TRIALS) if line["status"] == "done"]
    keys = ("parameters", "value", "epoch")
    assert [[line[key] for key in keys] for line in parts] == [[line[key] for key in keys] for line in whole]
    assert parts[1]["again"] == 1 and not (tmp_path / "parts" / "trials" / "margin-1").exists()
    one, two = ((tmp_path / name / "best" / "margin.toml").read_text() for name in ("whole", "parts"))
    assert [row for row in one.splitlines() if row[0] != "#"] == [row for row in two.splitlines() if row[0] != "#"]


def test_sigterm_between_the_steps_of_trials_abandons_the_trial(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def terminated(settings: Train) -> float:
        signal.raise_signal(signal.SIGTERM)
        return 0.5

    install(monkeypatch, terminated)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert tune("--config", base, "--loss", "margin", "--trials", 2, "--study", tmp_path / "study") == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    assert f"go on with nearkin tune --study {tmp_path}/study." in capsys.readouterr().err
    [line] = files.read(tmp_path / "study" / files.TRIALS)
    assert (line["status"], line["reason"]) == ("abandoned", "stopped on request")


def test_a_trial_that_waits_does_not_run_elsewhere(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Train] = []

    def stopped(settings: Train) -> float:
        calls.append(settings)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return peak(settings)

    install(monkeypatch, stopped)
    assert tune("--config", base, "--loss", "proxy_anchor", "--trials", 5, "--study", tmp_path / "study") == 130
    capsys.readouterr()
    assert tune("--study", tmp_path / "study", "--trials", 2) == 0
    error = capsys.readouterr().err
    assert "trials of proxy_anchor that were interrupted and wait: 1; go on with --trials 3." in error
    assert "elsewhere" not in error
    assert tune("--study", tmp_path / "study", "--trials", 3) == 0
    assert "wait" not in capsys.readouterr().err and len(calls) == 4


def test_a_folder_of_runs_is_no_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tune("--help")
    shown = capsys.readouterr().out
    assert "--study" in shown and "--out" not in shown
    assert not re.search(r"--(no-)?(test|audit)\b(?!-)", shown)  # which it refuses


def test_failed_trials_are_in_the_table(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, lambda settings: float("nan"))
    words = ("--config", base, "--loss", "proxy_anchor", "--trials", 12, "--pruner", "none")
    assert tune(*words, "--study", tmp_path / "study") == 1
    shown = capsys.readouterr().out
    assert "no trial came to its end" in shown and "nearkin train" not in shown
    assert "  trials/proxy_anchor-0: the loss became nan in step 7 of 30 (margin 0.1, scale 32)" in shown
    assert "  and 2 more; trials.jsonl has every reason" in shown
    assert not (tmp_path / "study" / "best").exists()
    # What failed is run again when asked for, and only then.
    install(monkeypatch, peak)
    assert tune("--study", tmp_path / "study") == 1
    assert tune("--study", tmp_path / "study", "--retry-failed") == 0
    lines = files.read(tmp_path / "study" / files.TRIALS)
    assert [line["status"] for line in lines] == ["failed"] * 12 + ["done"] * 12
    assert [line["again"] for line in lines[12:]] == list(range(12))
    assert [line["parameters"] for line in lines[12:]] == [line["parameters"] for line in lines[:12]]
    assert "Failed trials" not in capsys.readouterr().out.split("best so far")[-1]
    assert "retry_failed" not in (tmp_path / "study" / COMMAND).read_text()


def test_a_search_of_ones_own_in_a_file(tmp_path: Path, base: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Path(base).open("a") as file:
        file.write('trials = 7\nmethod = "grid"\n[search]\nmargin = true\nlr = {low = 1e-4, high = 1e-2, log = true}\n')
        file.write("scale = [16, 32]\n")
    assert tune("--config", base, "--losses", "proxy_anchor", "--dry-run") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "7 trials of each loss by grid, pruner median, study runs/tune-glyphs"
    assert [" ".join(line.split()) for line in shown[3:]] == [
        "margin low 0, high 1, step 0.1; begins at 0.1",
        "lr low 0.0001, high 0.01, log; begins at 0.001",
        "scale choices [16, 32]; begins at 32",
    ]
    assert tune("--config", base, "--losses", "proxy_anchor", "--dry-run", "--search", "lr,margin,scale,dim") == 2
    assert "search: dim of proxy_anchor has no range of its own" in capsys.readouterr().err


def test_everything_there_is_to_try(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, peak)
    ranges = ("--ranges", "margin=[0.1,0.2]", "scale=[16,32]")
    assert tune("--config", base, "--loss", "proxy_anchor", *ranges, "--study", tmp_path / "study") == 0
    shown = capsys.readouterr()
    assert "4 of 20" in shown.out
    assert "proxy_anchor has 4 trials of 20; everything there is to try of margin, scale has been tried" in shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--losses", "proxy_ancor"), "loss 'proxy_ancor' is not known; did you mean 'proxy_anchor'?"),
        (
            ("--out", "foo"),
            "out must be left out, since every trial has a folder in that of the study, got 'foo'; name",
        ),
        (("--trials", 0), "tune: trials must be a whole number at least 1, got 0"),
        (("--method", "random"), "tune: method must be 'tpe' or 'grid' or 'one_at_a_time', got 'random'"),
        (("--protocol", "test_feedback"), "protocol must be fixed_validation or cross_validation"),
        (("--test",), "test must be off while settings are searched for, got it on; leave it out."),
        (("--ranges", "lr={low=1,high=2}"), "ranges must be of parameters that are searched (margin, scale), got 'lr'"),
        (
            ("--method", "one_at_a_time", "--trials", 2),
            "trials must be at least 3 to try each parameter of proxy_anchor",
        ),
        (("--loss-settings", "margn=1"), "proxy_anchor: setting 'margn' is not known; did you mean 'margin'?"),
        (
            ("--ranges", "scale={low=0,high=2}"),
            "ranges of proxy_anchor: scale must be a finite number above 0, got 0.0; change scale.",
        ),
        (
            ("--loss", "contrastive"),
            "loss and losses must not both be given, got 'contrastive' and 'proxy_anchor'; leave one out.",
        ),
        (("--data", "glyps"), "data set 'glyps' is not known; did you mean 'glyphs'?"),
        (("--audit",), "audit must be off while settings are searched for, got it on; leave it out."),
        (
            ("--search-seed", 2**63),
            "tune: search_seed must be a whole number at least 0 and at most 9223372036854775807",
        ),
        (
            ("--split-seed", 2**63),
            "train: split_seed must be a whole number at least 0 and at most 9223372036854775807",
        ),
        (("--ratio", 0.95), "the classes kept back to validate must be at least two"),
    ],
)
def test_what_cannot_be(
    tmp_path: Path, base: str, words: tuple[object, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    assert tune("--config", base, "--study", folder, "--losses", "proxy_anchor", *words) == 2
    error = capsys.readouterr().err
    assert error.startswith("nearkin tune: ") and message in error and error.count("\n") == 1
    assert not folder.exists()


@pytest.mark.parametrize("key", ["data_settings", "ranges"])
def test_what_is_no_table_in_a_file_is_not_covered_by_flags(
    tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.toml").write_text(f'data = "glyphs"\n{key} = "x"\n')
    flag = f"--{key.replace('_', '-')}"
    assert tune("--config", tmp_path / "c.toml", flag, "classes=40", "--study", tmp_path / "study") == 2
    assert f"{key} must be a table of settings, got 'x'; change {key}." in capsys.readouterr().err


def test_sizes_that_cannot_be_cropped_fail_alone(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, lambda settings: 0.5)
    words = ("--loss", "triplet", "--search", "own,size", "--ranges", "size={low=24,high=40}", "--trials", 6)
    assert tune("--config", base, *words, "--study", tmp_path / "study") == 0
    lines = files.read(tmp_path / "study" / files.TRIALS)
    failed = [line for line in lines if line["parameters"]["size"] > 32]
    assert len(lines) == 6 and failed and {line["status"] for line in lines} == {"done", "failed"}
    for line in lines:
        size = line["parameters"]["size"]
        reason = f"train: size must be at most resize (32), got {size}; crops are cut from that side."
        assert (line["status"], line["reason"]) == (("failed", reason) if size > 32 else ("done", ""))
    assert failed[0]["reason"] in capsys.readouterr().out


def given_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / COMMAND).read_text())["given"])


def losses_in(folder: Path) -> list[str]:
    """The losses of the trials so far, in their order."""
    return list(dict.fromkeys(line["loss"] for line in files.read(folder / files.TRIALS)))


def test_a_loss_that_is_named_goes_before_those_remembered(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, lambda settings: 0.5)
    folder = tmp_path / "study"
    words = ("--config", base, "--study", folder)
    assert tune(*words, "--losses", "margin,triplet", "--trials", 2) == 0
    capsys.readouterr()
    assert tune(*words, "--loss", "contrastive") == 0
    shown = capsys.readouterr().out
    assert "contrastive.toml" in shown and "margin.toml" not in shown
    assert losses_in(folder) == ["margin", "triplet", "contrastive"]
    assert given_in(folder)["losses"] == "margin,triplet,contrastive"
    # One that is there already is shown alone, and stays one of all.
    assert tune(*words, "--loss", "margin") == 0
    shown = capsys.readouterr().out
    assert "margin.toml" in shown and "contrastive.toml" not in shown
    assert tune("--study", folder) == 0
    shown = capsys.readouterr().out
    assert all(f"{loss}.toml" in shown for loss in ("margin", "triplet", "contrastive"))


def test_a_loss_in_the_file_goes_before_those_remembered_where_it_is_another(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, lambda settings: 0.5)
    folder, file = tmp_path / "study", Path(base)
    plain = file.read_text()
    file.write_text(f'loss = "nra"\n{plain}')
    assert tune("--config", base, "--losses", "margin,triplet", "--trials", 1, "--study", folder) == 0
    assert tune("--config", base, "--trials", 2, "--study", folder) == 0  # goes on with what was asked for
    assert losses_in(folder) == ["margin", "triplet"] and len(files.read(folder / files.TRIALS)) == 4
    file.write_text(f'loss = "contrastive"\n{plain}')
    assert tune("--config", base, "--study", folder) == 0
    assert losses_in(folder) == ["margin", "triplet", "contrastive"]


def test_a_loss_is_added_with_the_same_settings_only(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, lambda settings: 0.5)
    folder = tmp_path / "study"
    assert tune("--config", base, "--losses", "margin,triplet", "--trials", 2, "--study", folder) == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    other, end = f"in the study '{folder}', got", "leave it out, or begin another study with --study."
    for words, message in (
        (("--epochs", 5), f"epochs of margin must stay 3 {other} 5; {end}"),
        (("--method", "grid"), f"method of margin must stay 'tpe' {other} 'grid'; {end}"),
        (
            ("--loss-settings", "distance=euclidean"),
            f"settings must suit every loss of the study '{folder}', got some that do not suit margin (margin: setting "
            f"'distance' is not known; did you mean 'miner'?); change them, or begin another study with --study.",
        ),
    ):
        capsys.readouterr()
        assert tune("--study", folder, "--losses", "contrastive", *words) == 2
        assert capsys.readouterr().err == f"nearkin tune: {message}\n"
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert tune("--study", folder, "--losses", "contrastive", "--epochs", 3) == 0
    assert given_in(folder)["losses"] == "margin,triplet,contrastive"
    assert tune("--study", folder, "--trials", 3) == 0
    lines = files.read(folder / files.TRIALS)
    assert [sum(line["loss"] == loss for line in lines) for loss in losses_in(folder)] == [3, 3, 3]


@pytest.mark.parametrize("found", ["none", [1]])
def test_a_study_that_does_not_say_what_was_given(
    tmp_path: Path, found: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / COMMAND
    path.write_text(json.dumps({"format": FORMAT} | ({} if found == "none" else {"given": found})))
    assert tune("--study", tmp_path) == 2
    assert capsys.readouterr().err == (
        f"nearkin tune: {path} must hold a table 'given' of the settings the study was begun with, got "
        f"{None if found == 'none' else found}; restore it or begin another study.\n"
    )


def test_weights_are_found_from_any_folder(tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    folder, weights = tmp_path / "study", tmp_path / "exp" / "model.safetensors"
    weights.parent.mkdir()
    weights.touch()
    monkeypatch.chdir(tmp_path)
    words = ("--config", base, "--loss", "proxy_anchor", "--trials", 2, "--study", folder)
    assert tune(*words, "--weights", "exp/model.safetensors") == 0
    best = files.best_path(folder, "proxy_anchor")
    assert given_in(folder)["weights"] == config.read(best, Train)["weights"] == str(weights)
    monkeypatch.chdir(weights.parent)
    assert tune(*words, "--weights", "model.safetensors") == 0 and tune("--study", folder) == 0


def test_weights_of_a_package_are_no_file(tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "package").touch()
    words = ("--config", base, "--loss", "proxy_anchor", "--trials", 1, "--weights", "package")
    assert tune(*words, "--study", tmp_path / "study") == 0
    assert given_in(tmp_path / "study")["weights"] == "package"


def test_a_study_from_another_version(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, peak)
    folder = tmp_path / "study"
    assert tune("--config", base, "--loss", "proxy_anchor", "--trials", 2, "--study", folder) == 0
    known = json.loads((folder / COMMAND).read_text())
    (folder / COMMAND).write_text(json.dumps(known | {"format": FORMAT + 1, "version": "7.0"}))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert tune("--study", folder) == 2
    assert capsys.readouterr().err == (
        f"nearkin tune: study must be of format 1, got 2 in '{folder}', written by nearkin 7.0; go on with that version, "
        f"or begin another study with --study. Nothing in it was changed.\n"
    )
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_folder_with_something_else(tmp_path: Path, base: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune("--config", base, "--losses", "proxy_anchor", "--study", tmp_path) == 2
    assert "study must be a new folder or one that holds a study" in capsys.readouterr().err


def test_a_study_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for name, what in (("nosuch", "which is not there"), ("empty", "which holds none")):
        assert tune("--study", tmp_path / name, "--trials", 3) == 2
        assert capsys.readouterr().err == (
            f"nearkin tune: study must be the folder of a study to go on with, got '{tmp_path / name}', {what}; check the "
            f"path, or begin a new one with --root FOLDER OF IMAGES.\n"
        )
    assert not (tmp_path / "nosuch").exists()


def test_a_broken_line_of_the_journal_is_named(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, peak)
    folder = tmp_path / "study"
    assert tune("--config", base, "--loss", "proxy_anchor", "--trials", 2, "--study", folder) == 0
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    for place in (2, len(lines) - 1):
        damaged = [*lines[:place], b'{"op\x00' + lines[place][5:], *lines[place + 1 :]]
        (folder / JOURNAL).write_bytes(b"".join(damaged))
        capsys.readouterr()
        assert tune("--study", folder, "--trials", 4) == 2
        error = capsys.readouterr().err
        assert f"{folder / JOURNAL} line {place + 1} must be JSON, got a damaged line (" in error
        assert error.count("\n") == 1 and (folder / JOURNAL).read_bytes() == b"".join(damaged)


def test_a_broken_line_of_the_trials_is_written_again(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, peak)
    folder = tmp_path / "study"
    assert tune("--config", base, "--loss", "proxy_anchor", "--trials", 3, "--study", folder) == 0
    lines = (folder / files.TRIALS).read_bytes().splitlines(keepends=True)
    (folder / files.TRIALS).write_bytes(b'{"loss\x00\n' + b"[]\n" + b"{}\n" + lines[1])
    assert tune("--study", folder) == 0
    assert [line.get("number") for line in files.read(folder / files.TRIALS)] == [None, 1, 0, 2]


def test_trials_are_counted_from_1_for_people(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, lambda settings: 0.5)  # the first of equals is the best
    folder = tmp_path / "study"
    assert tune("--config", base, "--loss", "proxy_anchor", "--trials", 2, "--study", folder) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("proxy_anchor  1 of 2  50.0 in epoch 2") and shown[0].endswith("(best so far)")
    head = next(place for place, line in enumerate(shown) if line.startswith("loss "))
    assert shown[head + 2].split()[:4] == ["proxy_anchor", "50.0", "1", "2"]
    assert "trial 1, trials/proxy_anchor-0." in files.best_path(folder, "proxy_anchor").read_text().splitlines()[0]


def test_without_optuna(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert tune("--data", "glyphs") == 2
    assert (
        capsys.readouterr().err == "nearkin tune: nearkin tune needs Optuna, got none; pip install 'nearkin[tune]'.\n"
    )


def test_under_torchrun(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert tune("--data", "glyphs") == 2
    assert "must be begun without torchrun" in capsys.readouterr().err


def test_two_real_processes(tmp_path: Path, base: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way through worker processes, with real training."""
    folder = tmp_path / "study"
    assert crew.COMMAND[1:] == ("-m", "nearkin.tune.worker")
    assert tune("--config", base, "--loss", "margin", "--trials", 2, "--processes", 2, "--study", folder) == 0
    lines = files.read(folder / files.TRIALS)
    assert sorted(line["number"] for line in lines) == [0, 1] and all(line["worker"] for line in lines)
    assert {line["status"] for line in lines} == {"done"} and (folder / "best" / "margin.toml").exists()
    assert resolve(config.read(folder / "best" / "margin.toml", Train)).protocol == "last_epoch"

"""The study: equal numbers of trials, what came of each, and what a lost process or another version leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nearkin.locks import FileLock
from nearkin.tune import files, trial
from nearkin.tune.attempt import ABANDONED, DONE, FAILED, PRUNED, RUNNING, best
from nearkin.tune.show import Show
from nearkin.tune.study import DEATHS, FACTS, FORMAT, JOURNAL, Study
from nearkin.tune.worker import work
from tests.tune.stubs import install, peak, plan, study

OTHER = {"margin": [0.1, 0.2, 0.3, 0.4, 0.5], "scale": [8, 16]}


def finish(found: Study) -> None:
    with found:
        work(found, Show())


def test_every_loss_gets_as_many_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, lambda settings: 0.5)
    seen: list[str] = []
    monkeypatch.setattr(
        trial, "run", lambda s, t, a, *rest, real=trial.run: (seen.append(a.loss), real(s, t, a, *rest))
    )
    losses = ("proxy_anchor", "triplet", "nra")
    finish(study(tmp_path, *map(plan, losses), trials=5))
    assert seen == list(losses) * 5  # in turn, so that a study that is stopped is fair too
    lines = files.read(tmp_path / files.TRIALS)
    assert [sum(line["loss"] == loss for line in lines) for loss in losses] == [5, 5, 5]


def test_the_best_is_found_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    found = study(tmp_path, trials=30)
    finish(found)
    tried = found.counted("proxy_anchor")
    chosen = best(tried)
    assert chosen is not None and chosen.value == max(peak(plan().settings(entry.parameters)) for entry in tried)
    assert abs(chosen.parameters["margin"] - 0.7) <= 0.1 and abs(chosen.parameters["scale"] - 20) <= 14
    assert chosen.epoch == 1 and chosen.curve == {0: chosen.value / 2, 1: chosen.value, 2: chosen.value * 0.9}


def test_a_finished_study_does_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    finish(study(tmp_path))
    before = (tmp_path / JOURNAL).read_bytes()
    monkeypatch.setattr(trial, "train", None)
    finish(study(tmp_path))
    assert (tmp_path / JOURNAL).read_bytes() == before


def test_more_trials_may_be_asked_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    finish(study(tmp_path / "parts", trials=3))
    finish(study(tmp_path / "parts", trials=12))
    finish(study(tmp_path / "whole", trials=12))
    parts, whole = (
        [entry.parameters for entry in study(tmp_path / name).attempts("proxy_anchor")] for name in ("parts", "whole")
    )
    assert parts == whole


def test_failures_keep_their_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def value(settings: Any) -> float:
        scale = settings.loss_settings["scale"]
        if scale == 8:
            raise RuntimeError("CUDA out of memory.\nTried to allocate 2 GiB")
        return float("nan") if scale == 16 else 0.5

    install(monkeypatch, value)
    ranges = {"scale": [8, 16, 32], "margin": [0.1, 0.2]}
    found = study(tmp_path, plan(ranges=ranges), trials=6, method="grid")
    finish(found)
    reasons = {entry.parameters["scale"]: entry.reason for entry in found.counted("proxy_anchor")}
    assert reasons == {
        8: "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
        16: "the loss became nan in step 7 of 30",
        32: "",
    }
    lines = files.read(tmp_path / files.TRIALS)
    assert [line["status"] for line in lines].count(FAILED) == 4 and len(lines) == 6
    assert {line["reason"] for line in lines} == set(reasons.values())
    states = {entry.state.name for entry in found.studies["proxy_anchor"].trials}
    assert states == {"COMPLETE", "FAIL"}


def test_the_first_mistake_in_the_settings_stops_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def value(settings: Any) -> float:
        raise ValueError("images must be at least 2, got 1; raise images.")

    install(monkeypatch, value)
    found = study(tmp_path)
    with pytest.raises(ValueError, match="images must be at least 2"):
        finish(found)
    assert not found.counted("proxy_anchor")
    install(monkeypatch, peak)  # mended
    finish(study(tmp_path))
    assert [entry.status for entry in found.attempts("proxy_anchor")] == [ABANDONED, DONE, DONE, DONE, DONE]


@pytest.mark.parametrize("seed", range(4))
def test_a_draw_that_is_refused_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """By training or by the loss, and also where it is the first of a grid."""
    install(monkeypatch, lambda settings: 0.5)
    cropped = plan("triplet", "size", {"size": [28, 40]}, geometry="crop", size=28, resize=32)
    together = plan("ranked_list", "alpha,margin", {"alpha": [1.2, 0.3], "margin": [0.2, 0.5]})
    together.check()  # each choice is fine with some other
    found = study(tmp_path, cropped, together, trials=4, method="grid", search_seed=seed)
    finish(found)
    assert {str(entry.parameters): entry.reason for entry in found.attempts("triplet")} == {
        "{'size': 28}": "",
        "{'size': 40}": "train: size must be at most resize (32), got 40; crops are cut from that side.",
    }
    failed = [entry for entry in found.attempts("ranked_list") if entry.status == FAILED]
    assert [entry.parameters for entry in failed] == [{"alpha": 0.3, "margin": 0.5}]
    assert failed[0].reason.startswith("ranked_list: margin must be at most alpha = 0.3, got 0.5: ")
    assert len(found.counted("ranked_list")) == 4


def test_a_full_disk_stops_the_study_and_costs_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def value(settings: Any) -> float:
        raise OSError(28, "No space left on device")

    install(monkeypatch, peak)
    finish(study(tmp_path, trials=2))
    install(monkeypatch, value)
    with pytest.raises(OSError, match="No space left"):
        finish(study(tmp_path))
    install(monkeypatch, peak)
    found = study(tmp_path)
    finish(found)
    assert [entry.status for entry in found.attempts("proxy_anchor")] == [DONE, DONE, ABANDONED, DONE, DONE]
    assert [entry.again for entry in found.attempts("proxy_anchor")] == [None, None, None, 2, None]


def test_hopeless_trials_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    found = study(tmp_path, plan(warm_up=0, epochs=3), trials=20, pruner="median", method="grid")
    finish(found)
    tried = found.counted("proxy_anchor")
    pruned = [entry for entry in tried if entry.status == PRUNED]
    done = [entry for entry in tried if entry.status == DONE]
    assert pruned and len(tried) == 20 and all(entry.status == DONE for entry in tried[:5])
    assert all(0 not in {len(entry.curve) - 1} for entry in pruned)  # not in the first third of the epochs
    middle = sorted(entry.value or 0 for entry in done)[len(done) // 2]
    assert all((entry.value or 0) < middle for entry in pruned)
    assert "below the median of the other trials in epoch 2" in {entry.reason for entry in pruned}


# ------------------------------------------------------------------------------------------------- lost processes


def test_a_trial_whose_process_is_gone_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    lost = study(tmp_path)
    lost.alive.acquire()
    started = lost.begin()
    assert isinstance(started, tuple)
    other = study(tmp_path)
    with other.alone():
        other.sweep()
    assert other.attempts("proxy_anchor")[0].status == RUNNING  # it lives
    lost.alive.release()  # as the system does for a process that is killed
    finish(other)
    first, second, *rest = other.attempts("proxy_anchor")
    assert first.status == ABANDONED and first.reason == "its process died"
    assert second.status == DONE and second.again == 0 and second.parameters == first.parameters
    assert len(other.counted("proxy_anchor")) == 4 and len(rest) == 3
    assert not list(other.workers.iterdir())


def test_a_trial_that_kills_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    for _ in range(DEATHS):
        assert isinstance(study(tmp_path).begin(), tuple)  # and its process dies
    found = study(tmp_path, trials=2)
    finish(found)
    assert [entry.status for entry in found.attempts("proxy_anchor")] == [ABANDONED] * 2 + [FAILED, DONE]
    assert found.attempts("proxy_anchor")[2].reason == "3 processes died over it, the last one: its process died"


def test_locks_are_one_at_a_time(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert one.try_acquire() and not other.try_acquire()
    one.release()
    assert other.try_acquire()
    other.release()


def test_a_torn_line_of_the_journal_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    finish(study(tmp_path, trials=2))
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"op_code":8,"worker_id":"')
    with (tmp_path / files.TRIALS).open("ab") as file:
        file.write(b'{"loss": "proxy_an')
    found = study(tmp_path, trials=4)
    finish(found)
    assert len(found.counted("proxy_anchor")) == 4
    assert [line["number"] for line in files.read(tmp_path / files.TRIALS)] == [0, 1, 2, 3]
    assert all(json.loads(line) for line in (tmp_path / JOURNAL).read_bytes().splitlines())


# ------------------------------------------------------------------------------------------------- other versions


def rewritten(folder: Path, change: dict[str, Any]) -> None:
    """The journal with other facts about the study."""
    lines = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
    for line in lines:
        if FACTS in line.get("user_attr", {}):
            line["user_attr"][FACTS] |= change
    (folder / JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_study_of_another_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, peak)
    finish(study(tmp_path))
    rewritten(tmp_path, {"format": FORMAT + 1, "version": "9.9"})
    before = (tmp_path / JOURNAL).read_bytes()
    with pytest.raises(
        ValueError, match=r"study must be of format 1, got 2 in '.*', written by nearkin 9.9; go on with"
    ):
        study(tmp_path)
    assert (tmp_path / JOURNAL).read_bytes() == before


def test_a_study_that_is_not_ours(tmp_path: Path) -> None:
    import optuna

    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / JOURNAL))
    theirs = optuna.create_study(storage=optuna.storages.JournalStorage(backend), study_name="proxy_anchor")
    theirs.ask()
    with pytest.raises(ValueError, match="study must be of format 1, got None in"):
        study(tmp_path)


@pytest.mark.parametrize("line", ["no JSON\n", '{"op_code": 99, "worker_id": "x"}\n', "{}\n"])
def test_a_journal_that_cannot_be_read(tmp_path: Path, line: str) -> None:
    study(tmp_path)
    text = line + (tmp_path / JOURNAL).read_text()
    (tmp_path / JOURNAL).write_text(text)
    message = "study must be one that this version reads, got .*Nothing in it was changed"
    if line == "no JSON\n":
        message = "journal.jsonl line 1 must be JSON, got a damaged line .*Nothing in it was changed"
    with pytest.raises(ValueError, match=message):
        study(tmp_path)
    assert (tmp_path / JOURNAL).read_text() == text


def test_weights_by_another_path_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies of former versions hold the path as it was typed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.safetensors").touch()
    study(tmp_path / "study", plan(weights="model.safetensors"))
    study(tmp_path / "study", plan(weights=str(tmp_path / "model.safetensors")))
    with pytest.raises(ValueError, match="weights of proxy_anchor must stay 'model.safetensors' in the study"):
        study(tmp_path / "study", plan(weights="other.safetensors"))
    with pytest.raises(ValueError, match="weights of proxy_anchor must stay"):
        study(tmp_path / "study", plan())


@pytest.mark.parametrize(
    ("other", "settings", "message"),
    [
        ({"lr": 1e-3}, {}, "lr of proxy_anchor must stay .* got 0.001; leave it out"),
        ({"ranges": OTHER}, {}, "ranges of proxy_anchor must stay"),
        ({}, {"method": "grid"}, "method of proxy_anchor must stay 'tpe' in the study .*, got 'grid'"),
        ({}, {"search_seed": 1}, "search_seed of proxy_anchor must stay 0"),
        ({}, {"images": "abc"}, "the training images must be those the study .* began with"),
    ],
)
def test_other_settings(tmp_path: Path, other: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    study(tmp_path)
    before = (tmp_path / JOURNAL).read_bytes()
    with pytest.raises(ValueError, match=message):
        study(tmp_path, plan("triplet"), plan(**other), **settings)
    assert (tmp_path / JOURNAL).read_bytes() == before  # triplet was not begun either

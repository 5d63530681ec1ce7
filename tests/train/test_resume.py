"""A run that is killed and resumed ends as if it had never been stopped: bit for bit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from nearkin import calling
from nearkin.train.loop import train
from nearkin.train.watch import Diverged
from tests.patience import PATIENCE, until
from tests.train.runs import flags, left, starter, tiny, train_in_parts


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packs")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "nearkin", "train", *words]


def written(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_killed_at_random_moments(tmp_path: Path, packs: Path, workers: int) -> None:
    whole = tiny(tmp_path / "whole", packs, epochs=40)
    train(whole)
    expected = left(tmp_path / "whole")
    settings = tiny(tmp_path / "killed", packs, epochs=40, workers=workers)
    chance = random.Random(workers)
    killed, log = 0, tmp_path / "killed" / "log.jsonl"
    for _ in range(7):
        process = starter().Process(target=train, args=(settings,), kwargs={"resume": killed > 0})
        size = written(log)
        process.start()
        until(lambda: written(log) > size + 400 or not process.is_alive(), pause=0.005)  # noqa: B023
        time.sleep(chance.random() * 0.4)
        process.kill()
        process.join()
        if process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0
            break
        killed += 1
    assert killed >= 2
    subprocess.run(command("--resume", str(tmp_path / "killed")), check=True, stdout=subprocess.DEVNULL)
    assert left(tmp_path / "killed") == expected


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": "proxy_anchor", "sampler": "random", "optimizer": "sgd"},
        {"memory": 20, "loss": "contrastive", "workers": 2},
        {"sampler": "hard_class", "schedule": "cosine"},
        {"sampler": "smart", "batch": 10, "optimizer": "sgd"},
        {"chunk": 5, "frozen_batch_norm": True, "iterations": 17, "clip_norm": 0.5},
        {"levels": "lmh", "loss": "ranked_list", "precision": "float64"},
    ],
)
def test_stopped_in_the_middle_of_a_step(
    tmp_path: Path, packs: Path, changes: dict[str, Any], monkeypatch: Any
) -> None:
    """Stopped by force in one step of each third of the run, inside an epoch and at its edge."""
    train(tiny(tmp_path / "whole", packs, **changes))
    settings = tiny(tmp_path / "parts", packs, **changes)
    train_in_parts(settings, (3, 8, 13), monkeypatch)
    assert left(tmp_path / "parts") == left(tmp_path / "whole")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_save_and_tell_how_to_resume(
    number: signal.Signals, code: int, tmp_path: Path, packs: Path
) -> None:
    train(tiny(tmp_path / "whole", packs, epochs=60, checkpoint_every=1e6))
    settings = tiny(tmp_path / "stopped", packs, epochs=60, checkpoint_every=1e6)
    log = tmp_path / "stopped" / "log.jsonl"
    with subprocess.Popen(command(*flags(settings)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until(lambda: written(log) > 400 or process.poll() is not None, pause=0.005)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert f"go on with {calling.line('train', '--resume', tmp_path / 'stopped')}" in errors.decode()
    assert train(settings, resume=True)["step"] == 60 * 4
    assert left(tmp_path / "stopped") == left(tmp_path / "whole")


@pytest.mark.parametrize("sampler", ["hard_class", "smart"])
def test_samplers_that_mine_are_saved_inside_an_epoch(
    tmp_path: Path, packs: Path, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops in the third epoch loses no step, and what was mined before it is not mined again."""
    settings = tiny(tmp_path / "run", packs, sampler=sampler)
    loop, asked = sys.modules["nearkin.train.loop"], []
    real, pause = loop._Run._mine, loop._Run._pause  # type: ignore[attr-defined]
    monkeypatch.setattr(loop._Run, "_mine", lambda run, epoch: (asked.append(epoch), real(run, epoch))[1])  # type: ignore[attr-defined]

    def stopped(run: Any, stop: Any) -> None:
        stop.asked = run.step == 2 * run.per_epoch + 2
        pause(run, stop)

    monkeypatch.setattr(loop._Run, "_pause", stopped)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt, match=r"stopped after step \d+ of \d+; go on with"):
        train(settings)
    monkeypatch.setattr(loop._Run, "_pause", pause)  # type: ignore[attr-defined]
    asked.clear()
    train(settings, resume=True)
    assert asked == [3, 4]
    train(tiny(tmp_path / "whole", packs, sampler=sampler))
    assert left(tmp_path / "run") == left(tmp_path / "whole")


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_weights(
    tmp_path: Path, packs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tiny(tmp_path / "run", packs)
    loop = sys.modules["nearkin.train.loop"]
    real = loop._Run._loss  # type: ignore[attr-defined]

    def loss(self: Any, *args: Any) -> torch.Tensor:
        value: torch.Tensor = real(self, *args)
        return value * float("nan") if self.step == 6 else value

    monkeypatch.setattr(loop._Run, "_loss", loss)  # type: ignore[attr-defined]
    with pytest.raises(
        Diverged, match=r"the loss became nan in step 6 of 20; the weights of step 6 are kept in"
    ) as error:
        train(settings)
    assert error.value.step == 6
    monkeypatch.setattr(loop._Run, "_loss", real)  # type: ignore[attr-defined]
    train(settings, resume=True)
    train(tiny(tmp_path / "whole", packs))
    assert left(tmp_path / "run") == left(tmp_path / "whole")


def test_a_collapsed_network_is_named(tmp_path: Path, packs: Path) -> None:
    with pytest.raises(Diverged, match="the embeddings collapsed to one point"):
        train(tiny(tmp_path / "run", packs, collapse=0.999999))


def test_what_cannot_be_resumed_is_one_sentence(tmp_path: Path, packs: Path) -> None:
    from nearkin.train.command import resumed

    with pytest.raises(ValueError, match="run must be a folder with a config.toml"):
        resumed(tmp_path / "none", {})
    settings = tiny(tmp_path / "run", packs, epochs=1)
    train(settings)
    with pytest.raises(ValueError, match="out must be a new folder, got .*, which holds a run; go on with it by"):
        train(settings)
    with pytest.raises(ValueError, match="lr must stay 0.001 when a run is resumed, got 0.5"):
        resumed(tmp_path / "run", {"lr": 0.5})
    assert resumed(tmp_path / "run", {"workers": 3}).workers == 3
    before = left(tmp_path / "run")
    train(settings, resume=True)  # a finished run is measured again and stays as it is
    assert left(tmp_path / "run") == before
    for path in (tmp_path / "run" / "checkpoint").glob("*/model.safetensors"):
        path.unlink()
    with pytest.raises(ValueError, match="must hold a whole checkpoint, got only damaged ones"):
        train(settings, resume=True)

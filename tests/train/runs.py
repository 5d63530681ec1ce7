"""A run small enough for a test, and what it leaves."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from nearkin import checkpoint
from nearkin.train.folder import RunFolder
from nearkin.train.loop import _Run, train
from nearkin.train.settings import Train

TIMING = ("seconds", "recording_seconds", "images_per_second", "peak_bytes")


def tiny(out: Path, packs: Path, **changes: Any) -> Train:
    """Twelve characters, a small network; a step takes a few milliseconds."""
    plain: dict[str, Any] = {
        "data": "glyphs",
        "data_settings": {"classes": 12, "images": 8},
        "packs": str(packs),
        "side": 0,
        "network": "small",
        "network_settings": {"width": 4},
        "dim": 8,
        "frozen_batch_norm": False,
        "loss": "margin",
        "sampler": "pk",
        "batch": 12,
        "images": 3,
        "epochs": 5,
        "geometry": "crop",
        "size": 28,
        "resize": 32,
        "lr": 1e-3,
        "loss_multiplier": 2.0,
        "warm_up": 1,
        "evaluate_every": 2,
        "device": "cpu",
        "threads": 1,
        "checkpoint_every": 0.0,
        "tensorboard": False,
        "out": str(out),
    }
    return Train(**(plain | changes))


def starter() -> Any:
    """Starts processes that have everything imported, from a clean one: what runs in them is under way at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.train.loop", "torch._dynamo"])  # an optimizer imports the latter
    return context


def flags(settings: Train) -> list[str]:
    """The settings as words of a command line."""
    words: list[str] = []
    where = {
        name: getattr(settings, name) for name in ("packs", "out", "device", "threads", "checkpoint_every", "workers")
    }
    for name, value in (settings.identity() | where).items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words += [flag if value else "--no-" + flag[2:]]
        elif isinstance(value, dict):
            words += [flag, *(f"{key}={entry}" for key, entry in value.items())] if value else []
        elif isinstance(value, tuple):
            words += [flag, *map(str, value)]
        elif value != "":
            words += [flag, str(value)]
    return words


def left(out: Path) -> dict[str, Any]:
    """Everything a run leaves but times: tensors of the last checkpoint as bytes, facts, log, measures."""
    folder = RunFolder(out)
    saved = checkpoint.load(folder.checkpoints)
    assert saved is not None
    tensors = {
        f"{group}/{name}": (value.dtype, tuple(value.shape), value.numpy().tobytes())
        for group, values in saved.tensors.items()
        for name, value in values.items()
    }
    facts = {
        key: value for key, value in saved.facts.items() if key not in ("seconds", "recording_seconds", "log_bytes")
    }
    log = [without_times(record) for record in folder.records()]
    return {
        "step": saved.step,
        "tensors": tensors,
        "facts": json.loads(json.dumps(facts)),
        "log": log,
        "metrics": without_times(folder.metrics()),
    }


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in TIMING}


def train_in_parts(settings: Train, stops: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, **named: Any) -> None:
    """Train, stopped by force before each of these steps and resumed."""
    real, resume = _Run._one_step, False
    for last in stops:

        def one_step(self: Any, *args: Any, last: int = last) -> None:
            if self.step == last:
                raise MemoryError("stopped by the test")
            real(self, *args)

        monkeypatch.setattr(_Run, "_one_step", one_step)
        with pytest.raises(MemoryError):
            train(settings, resume=resume, **named)
        resume = True
    monkeypatch.setattr(_Run, "_one_step", real)
    train(settings, resume=True, **named)

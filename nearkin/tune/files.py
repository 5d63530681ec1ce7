"""What a study leaves for people and programs: trials.jsonl, one line per trial that ended, and best/LOSS.toml."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from nearkin import checkpoint, config
from nearkin.locks import held
from nearkin.records import records
from nearkin.train.settings import Train
from nearkin.tune.attempt import Attempt, best
from nearkin.tune.plan import Plan
from nearkin.tune.study import Study

TRIALS = "trials.jsonl"


def write(study: Study) -> None:
    """Add lines for trials that have none yet, and bring the best settings up to date."""
    with held(study.folder / "files.lock"):
        attempts = [entry for loss in study.plans for entry in study.attempts(loss) if entry.finished]
        path = study.folder / TRIALS
        known = {(record.get("loss"), record.get("number")) for record in read(path)}
        missing = [attempt for attempt in attempts if (attempt.loss, attempt.number) not in known]
        _append(path, [attempt.record() for attempt in missing])
        for loss, plan in study.plans.items():
            found = best(study.attempts(loss))
            if found is not None:
                _write_best(study, plan, found)


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of trials.jsonl; a torn or damaged one is left out, and its trial then gets another."""
    return records(path)


def _append(path: Path, new: list[dict[str, Any]]) -> None:
    if not new:
        return
    before = path.read_bytes()[-1:] if path.exists() else b"\n"
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in new)
    with path.open("ab") as file:
        file.write((b"" if before in (b"\n", b"") else b"\n") + lines)
        file.flush()
        os.fsync(file.fileno())


def best_path(folder: Path, loss: str) -> Path:
    return folder / "best" / f"{loss}.toml"


def _write_best(study: Study, plan: Plan, found: Attempt) -> None:
    path = best_path(study.folder, plan.loss)
    counted = len(study.counted(plan.loss))
    text = best_text(plan, found, counted, study.trials)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(exist_ok=True)
        checkpoint.replace(path, text.encode())


def best_text(plan: Plan, found: Attempt, counted: int, trials: int) -> str:
    """The settings of a trial as ``nearkin train --config`` takes them: on all training classes, the test set at the end."""
    assert found.value is not None and found.epoch is not None
    settings = replace(plan.settings(found.parameters), protocol="last_epoch", test=True, audit=False)
    machine = {field.name for field in fields(Train) if field.metadata["machine"]}
    lines = [line for line in config.dump(settings).splitlines() if line.split(" = ")[0] not in machine]
    measure = f"recall@{settings.ks[0]}"
    note = [
        f"# The best of {counted} trials of {trials}, found by nearkin tune: trial {found.number + 1}, trials/{found.name}.",
        f"# Its {measure} was {found.value:.4f} on validation classes, in epoch {found.epoch + 1} of {settings.epochs}."
        if not settings.iterations
        else f"# Its {measure} was {found.value:.4f} on validation classes, in epoch {found.epoch + 1}.",
        "# That is a validation figure, the best of many: it flatters, and is no result on the test set.",
    ]
    return "\n".join([*note, *lines]) + "\n"

"""Do one run: claim it, train it or go on with it, write its line in the results."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from nearkin import locks, results
from nearkin.benchmark.job import Job
from nearkin.benchmark.where import where
from nearkin.results import Result
from nearkin.train.screen import Screen

SAID = ("label", "status", "metrics", "error", "left_out")
"""What a line of the results is written again for when it changes; a label is no part of what a run is known by."""


@contextlib.contextmanager
def claim(job: Job, out: Path) -> Iterator[bool]:
    """Whether this process alone has the run; the system lets go of it when the process ends, however it ends."""
    folder = out / "claims"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / job.id).open("a") as file:
        yield locks.take(file, wait=False)


def claimed(job: Job, out: Path) -> bool:
    """Whether some process is at a run, seen without leaving a trace: also where nothing may be written."""
    try:
        with (out / "claims" / job.id).open("rb") as file:
            return not locks.take(file, shared=True, wait=False)
    except FileNotFoundError:
        return False


def perform(
    job: Job,
    out: Path,
    *,
    keep_checkpoints: bool = True,
    failures: int = 0,
    shared: int | None = None,
    screen: Screen | None = None,
) -> Result | None:
    """Do one attempt at a run; returns its result, None if another process is at it.

    A finished run is not repeated, an interrupted one goes on. What goes wrong in the run is the result's ``error``; an
    interruption is raised. One that failed more than ``failures`` times is not
    tried: another process has, or nobody is to; ``shared``: runs on the device at a time.
    """
    out = out.resolve()
    with claim(job, out) as own:
        if not own:
            return None
        if len(job.failures(out)) > failures and not job.finished(out):
            return job.result(out)
        job.save(out)
        if not job.finished(out):
            job.note_where(out, where(job.settings.device, shared, job.settings.threads))
            error = _train(job, out, screen)
            if error:
                job.note_failure(out, error)
        if job.finished(out) and not keep_checkpoints:
            shutil.rmtree(job.folder(out) / "checkpoint", ignore_errors=True)
        return job.result(out)


def _train(job: Job, out: Path, screen: Screen | None) -> str:
    """Train; what went wrong, as a sentence, or nothing."""
    from nearkin.train.loop import train

    settings = job.placed(out)
    begun = (Path(settings.out) / "config.toml").exists()
    try:
        train(settings, resume=begun, screen=screen, untrained=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip()
    return ""


def record(out: Path, result: Result) -> None:
    """Add a result to the file, unless that very line is its last word on this run already."""
    path = out / results.FILE
    before = results.known(path).get(result.id)
    if before is None or any(getattr(before, name) != getattr(result, name) for name in SAID):
        results.append(path, result)

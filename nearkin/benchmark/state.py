"""How far a benchmark is, seen from its folder alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from nearkin import results
from nearkin.benchmark.job import FILE, Job
from nearkin.benchmark.perform import claim

DONE, FAILED, RUNNING, INTERRUPTED, WAITING = "done", "failed", "running", "interrupted", "waiting"


@dataclass(frozen=True)
class State:
    """A run and where it stands: done, failed, running, interrupted or waiting; ``note`` says more."""

    job: Job
    status: str
    note: str = ""


def states(jobs: Iterable[Job], out: Path) -> list[State]:
    """Where each run stands."""
    return [_state(job, out) for job in jobs]


def _state(job: Job, out: Path) -> State:
    if job.finished(out):
        found = json.loads((job.folder(out) / "metrics.json").read_bytes())
        first = next((name for name in found if name.startswith("recall@")), "")
        return State(job, DONE, f"{first} {100 * found[first]:.1f}" if first else "")
    if (out / "claims" / job.id).exists():
        with claim(job, out) as free:
            if not free:
                return State(job, RUNNING)
    failures = job.failures(out)
    if failures:
        return State(job, FAILED, failures[-1])
    begun = (job.folder(out) / "config.toml").exists()
    return State(job, INTERRUPTED if begun else WAITING)


def rebuild(out: Path) -> list[results.Result]:
    """Make the results again from the folders of the runs; the old file stays beside them under another name."""
    folders = sorted(path.parent for path in (out / "runs").glob(f"*/{FILE}"))
    if not folders:
        raise ValueError(
            f"out must be the folder of a benchmark, got {str(out)!r}, which holds no runs; run nearkin bench first."
        )
    path = out / results.FILE
    before = {}
    if path.exists():
        before = results.known(path)
        path.replace(path.with_suffix(".before.jsonl"))
    found = []
    for folder in folders:
        job = Job.load(folder)
        if not job.finished(out) and not job.failures(out):
            continue  # interrupted: it has no result yet
        result = job.result(out)
        if not result.where and job.id in before:
            result = replace(result, where=before[job.id].where)
        results.append(path, result)
        found.append(result)
    return found

"""How far a benchmark is, seen from its folder alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from nearkin import checkpoint, results
from nearkin.benchmark import grid as grids
from nearkin.benchmark.job import FILE, Job
from nearkin.benchmark.perform import claimed

DONE, FAILED, RUNNING, INTERRUPTED, WAITING = "done", "failed", "running", "interrupted", "waiting"


@dataclass(frozen=True)
class State:
    """A run and where it stands: done, failed, running, interrupted or waiting; ``note`` says more."""

    job: Job
    status: str
    note: str = ""


def states(jobs: Iterable[Job], out: Path) -> list[State]:
    """Where each run stands."""
    known = results.known(out / results.FILE)
    return [_state(job, out, job.id in known) for job in jobs]


def _state(job: Job, out: Path, recorded: bool) -> State:
    if job.finished(out):
        found = job.measures(out)
        first = next((name for name in found if name.startswith("recall@")), "")
        return State(job, DONE, f"{first} {100 * found[first]:.1f}" if first else "")
    if claimed(job, out):
        return State(job, RUNNING)
    failures = job.failures(out)
    if failures:
        # A failure has its line in the results only when it is not tried again.
        often = f"tried again after {len(failures)} failure{'s'[: len(failures) > 1]}: {failures[-1]}"
        return State(job, FAILED, failures[-1]) if recorded else State(job, WAITING, often)
    begun = (job.folder(out) / "config.toml").exists()
    return State(job, INTERRUPTED if begun else WAITING)


def rebuild(out: Path) -> list[results.Result]:
    """Make the results again from the folders of the runs; an old file that differs stays beside it under another name.

    Nothing is changed where a file of a run is damaged. A run that failed and is to be tried again gets no line: with one it
    would count as given up.
    """
    folders = sorted(path.parent for path in (out / "runs").glob(f"*/{FILE}"))
    if not folders:
        raise ValueError(
            f"out must be the folder of a benchmark, got {str(out)!r}, which holds no runs; run nearkin bench first."
        )
    checkpoint.make_folder("out", out)
    path = out / results.FILE
    with results.alone(path) as file:
        file.seek(0)
        old, before = file.read(), results.known(path)
        retries = _retries(out)
        found = [result for folder in folders if (result := _result(Job.load(folder), out, before, retries))]
        found += [result for result in before.values() if result.id.startswith(results.ELSEWHERE)]
        new = b"".join(map(results.line, found))
        if old and old != new:
            _keep(path, old)
        checkpoint.replace(path, new)
    return found


def _retries(out: Path) -> int:
    """How often a run that fails is tried again; where no grid can be read, nothing says that it is."""
    try:
        return grids.of(out).retries
    except ValueError:
        return 0


def _result(job: Job, out: Path, before: dict[str, results.Result], retries: int) -> results.Result | None:
    """The result of a run; None of one that was interrupted or is to be tried again, which has none yet."""
    given_up = job.id in before and not before[job.id].done
    if not job.finished(out) and len(job.failures(out)) <= (0 if given_up else retries):
        return None
    result = job.result(out)
    return replace(result, where=before[job.id].where) if not result.where and job.id in before else result


def _keep(path: Path, content: bytes) -> None:
    """Keep what a file held under a name that no other has."""
    names = itertools.chain([".before.jsonl"], (f".before-{number}.jsonl" for number in itertools.count(2)))
    checkpoint.write(next(place for name in names if not (place := path.with_suffix(name)).exists()), content)

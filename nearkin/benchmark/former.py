"""Runs under the ids of former versions, which hashed the settings of a loss as they were written, without its defaults.

They are not done again: a run that is in a folder under such an id, be it begun, failed or finished, keeps it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace
from pathlib import Path

from nearkin import results
from nearkin.benchmark.job import Job, digest

CHANGED: Set[str] = frozenset()
"""Losses that have got another default since: their runs under such ids may be of the one of before, and count no more."""


def former(job: Job) -> str:
    """The id that a run had in former versions."""
    return digest(job.data, {**job.settings.identity(), **job.origin})


def known(jobs: Iterable[Job], out: Path) -> tuple[Job, ...]:
    """The runs of a grid as they are known in a folder."""
    there = {path.name for path in (out / "runs").glob("*")} | results.known(out / results.FILE).keys()
    return tuple(_known(job, there) for job in jobs)


def _known(job: Job, there: Set[str]) -> Job:
    if job.id in there or former(job) not in there or job.resolved()["loss"] in CHANGED:
        return job
    return replace(job, known=former(job))

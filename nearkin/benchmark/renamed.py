"""Runs that would be done again only because their data set is called otherwise.

The name of a data set is part of what a run is known by: of two copies of one published set, cropped and not, nothing else
tells them apart, for the folder of such a set may move. So a new name makes new runs, which a person should know before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nearkin.benchmark.job import FILE, Job
from nearkin.wording import count


def renamed(jobs: Iterable[Job], out: Path) -> list[str]:
    """A sentence for each data set whose runs are finished in the folder under another name that the grid has no more."""
    jobs = list(jobs)
    names = {job.data for job in jobs}
    done = {what: name for name, what in _finished(out) if name not in names}
    again = Counter((done.get(_but_its_name(job), ""), job.data) for job in jobs if not job.finished(out))
    return [
        f"{count(number, 'run')} on {new!r} {'is' if number == 1 else 'are'} finished as {old!r} in {out}, but the name of "
        f"a data set is part of what runs are known by; call it {old!r} again to repeat nothing."
        for (old, new), number in again.items()
        if old
    ]


def _but_its_name(job: Job) -> str:
    root = str(Path(job.settings.root).resolve()) if job.settings.root else ""
    return json.dumps([job.resolved(), root], sort_keys=True)


def _finished(out: Path) -> Iterable[tuple[str, str]]:
    for place in (out / "runs").glob(f"*/{FILE}"):
        # A damaged run of another grid is of no concern here, nor is one of a loss that has changed.
        with suppress(ValueError, TypeError, KeyError):
            job = Job.load(place.parent)
            if job.finished(out):
                yield job.data, _but_its_name(job)

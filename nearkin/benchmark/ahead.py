"""What would fail in every run is found before the first one starts: data that is not there, classes too few."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from nearkin.benchmark import unchanged
from nearkin.benchmark.job import FILE, Job
from nearkin.benchmark.origin import OWN


def check(jobs: Iterable[Job], out: Path, retry: bool = False) -> None:
    """Raise what is wrong with the data or the weights of runs that are to be done on this machine; ``retry``: those that
    failed in the past too."""
    from nearkin import data
    from nearkin.models import weights
    from nearkin.train import prepare

    read: dict[str, data.Splits] = {}
    own: dict[str, tuple[str, data.Splits]] = {}
    for job in jobs:
        settings = job.settings
        source = _source(job)
        if job.finished(out) or (job.failures(out) and not retry):
            continue
        try:
            if source not in read:
                read[source] = data.load(settings.data, settings.root or None, **settings.data_settings)
            prepare.split(settings, read[source].train.labels)
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{job.data}: {error}") from error
        if settings.data in OWN:
            own[source] = (settings.root, read[source])
        if settings.weights:
            weights.check_there(settings.weights)
    if own:
        unchanged.check(own, _done(out), out)


def _source(job: Job) -> str:
    settings = job.settings
    return json.dumps([settings.data, settings.root, settings.data_settings], sort_keys=True)


def _done(out: Path) -> set[str]:
    """Sources of all finished runs in the folder, also of grids that it was given before."""
    jobs = (Job.load(place.parent) for place in (out / "runs").glob(f"*/{FILE}"))
    return {_source(job) for job in jobs if job.finished(out)}

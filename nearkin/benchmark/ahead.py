"""What would fail in every run is found before the first one starts: data that is not there, classes too few."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from nearkin import results
from nearkin.benchmark import unchanged
from nearkin.benchmark.job import FILE, Job
from nearkin.benchmark.origin import OWN
from nearkin.train.settings import Train


def check(jobs: Iterable[Job], out: Path, retry: bool = False) -> list[str]:
    """Raise what is wrong with the data or the weights of runs that are to be done on this machine; ``retry``: those that
    failed in the past too. Returns what a person should know about each source of data, which no run says again."""
    from nearkin import data
    from nearkin.models import weights
    from nearkin.train import before, prepare

    recorded = results.known(out / results.FILE)
    read: dict[str, data.Splits] = {}
    own: dict[str, tuple[str, data.Splits]] = {}
    notes: list[str] = []
    for job in jobs:
        settings = job.settings
        source = _source(job)
        # What failed and has no line yet is tried again.
        if job.finished(out) or (job.failures(out) and job.id in recorded and not retry):
            continue
        try:
            if source not in read:
                read[source] = data.load(settings.data, settings.root or None, **settings.data_settings)
                notes += [f"{job.data}: {note}" for note in read[source].notes]
            labels = read[source].train.labels
            before.check_classes(settings, labels[prepare.split(settings, labels).train], _remedy(settings))
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{job.data}: {error}") from error
        if settings.data in OWN:
            own[source] = (settings.root, read[source])
        if settings.weights:
            weights.check_there(settings.weights)
    if own:
        unchanged.check(own, _done(out), out)
    return notes


def _remedy(settings: Train) -> str:
    """What lets more classes train, in words of a grid."""
    if settings.protocol in ("fixed_validation", "cross_validation"):
        return "raise ratio" if settings.protocol == "fixed_validation" else "raise folds"
    return 'give data_settings = {split = "all"} in its entry of data' if settings.data == "folder" else ""


def _source(job: Job) -> str:
    settings = job.settings
    return json.dumps([settings.data, settings.root, settings.data_settings], sort_keys=True)


def _done(out: Path) -> set[str]:
    """Sources of all finished runs in the folder, also of grids that it was given before."""
    jobs = (Job.load(place.parent) for place in (out / "runs").glob(f"*/{FILE}"))
    return {_source(job) for job in jobs if job.finished(out)}

"""What would fail in every run is found before the first one starts: data that is not there, classes too few."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from nearkin.benchmark import unchanged
from nearkin.benchmark.job import Job
from nearkin.benchmark.origin import OWN


def check(jobs: Iterable[Job], out: Path) -> None:
    """Raise what is wrong with the data or the weights of runs that are to be done on this machine."""
    from nearkin import data
    from nearkin.models import weights
    from nearkin.train import prepare

    read: dict[str, data.Splits] = {}
    own: dict[str, tuple[str, data.Splits]] = {}
    done: set[str] = set()
    for job in jobs:
        settings = job.settings
        source = json.dumps([settings.data, settings.root, settings.data_settings], sort_keys=True)
        if job.finished(out):
            done.add(source)
        if job.finished(out) or job.failures(out):
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
    unchanged.check(own, done, out)

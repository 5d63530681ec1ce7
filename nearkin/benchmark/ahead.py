"""What would fail in every run is found before the first one starts: data that is not there, classes too few."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from nearkin.benchmark.job import Job


def check(jobs: Iterable[Job], out: Path) -> None:
    """Raise what is wrong with the data or the weights of runs that are to be done on this machine."""
    from nearkin import data
    from nearkin.models import weights
    from nearkin.train import prepare

    read: dict[str, data.Splits] = {}
    for job in jobs:
        settings = job.settings
        if job.finished(out) or job.failures(out):
            continue
        source = json.dumps([settings.data, settings.root, settings.data_settings], sort_keys=True)
        try:
            if source not in read:
                read[source] = data.load(settings.data, settings.root or None, **settings.data_settings)
            prepare.split(settings, read[source].train.labels)
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{job.data}: {error}") from error
        if settings.weights:
            weights.check_there(settings.weights)

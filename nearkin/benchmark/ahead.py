"""What would fail in every run is found before the first one starts: data that is not there, classes too few, a network
that cannot be made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearkin import results
from nearkin.benchmark import unchanged
from nearkin.benchmark.job import FILE, Job
from nearkin.benchmark.origin import OWN
from nearkin.train.settings import Train
from nearkin.wording import count

SPLIT = ("protocol", "ratio", "folds", "fold", "split_seed")
BATCHES = ("sampler", "batch", "images", "batches")
"""What says which images train, and which of these make a batch."""
WAY = "add {name}={value} to --settings"
"""Where a person says what works for all runs."""
_LAST = WAY.format(name="protocol", value="last_epoch")


def check(jobs: Iterable[Job], out: Path, retry: bool = False, here: bool = True) -> list[str]:
    """Raise what is wrong with runs that are to be done; ``retry``: those that failed in the past too. ``here``: on this
    machine, whose device, weights and data are looked at too. Returns what a person should know about each source of data,
    which no run says again."""
    jobs, recorded = list(jobs), results.known(out / results.FILE)
    # What failed and has no line yet is tried again.
    given_up = {job.id for job in jobs if job.failures(out) and job.id in recorded and not retry}
    left = [job for job in jobs if not job.finished(out) and job.id not in given_up]
    _check_settings(left, here)
    return _check_data(left, out) if here else []


def _check_settings(jobs: Iterable[Job], here: bool) -> None:
    """What can be said of the settings alone, once of each that differs."""
    from nearkin.models import weights
    from nearkin.train import before, prepare

    seen: set[str] = set()
    for job in jobs:
        one = job.settings
        if here and _new(seen, "device", one.device):
            prepare.device(one.device)
        if here and one.weights and _new(seen, "weights", one.weights):
            weights.check_there(one.weights)
        network = (one.network, one.network_settings, one.levels, one.pooling, one.size, one.test_size)
        if _new(seen, "network", *network, one.chunk and not one.frozen_batch_norm):
            try:
                before.check_network(one)
            except ImportError:
                if here:  # other machines may have a library that this one has not
                    raise
        if _new(seen, "memory", one.loss, one.loss_settings, one.memory):
            before.check_memory(one)


def _check_data(jobs: Iterable[Job], out: Path) -> list[str]:
    """Read each source of data once, and look whether runs can train and be measured on it."""
    from nearkin import data
    from nearkin.train import before

    read: dict[str, data.Splits] = {}
    own: dict[str, tuple[str, data.Splits]] = {}
    seen: set[str] = set()
    notes: list[str] = []
    for job in jobs:
        settings = job.settings
        source = _source(job)
        try:
            if source not in read:
                read[source] = data.load(settings.data, settings.root or None, **settings.data_settings)
                notes += [f"{job.data}: {note}" for note in read[source].notes]
            if _new(seen, source, settings.test):
                before.check_test_images(settings, read[source].test, "")
            if _new(seen, source, *(getattr(settings, name) for name in SPLIT + BATCHES)):
                notes += [f"{job.data}: {note}" for note in _check_training(settings, read[source].train.labels)]
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{job.data}: {error}") from error
        if settings.data in OWN:
            own[source] = (settings.root, read[source])
    if own:
        unchanged.check(own, _done(out), out)
    return list(dict.fromkeys(notes))  # folds have the same to say


def _check_training(settings: Train, labels: NDArray[np.int64]) -> list[str]:
    """Raise where such runs could not train or choose an epoch; a sentence where they hardly can."""
    from nearkin.distributed import Ranks
    from nearkin.train import before, prepare

    fold = prepare.split(settings, labels, WAY, _LAST)
    training = labels[fold.train]
    before.check_classes(settings, training, _remedy(settings))
    before.check_batch(prepare.sampler(settings, training, Ranks()).size)
    return _few(settings, labels, labels[fold.validation])


def _few(settings: Train, labels: NDArray[np.int64], validating: NDArray[np.int64]) -> list[str]:
    """A sentence where few classes validate: their measure may be the same in every epoch, so that the first is chosen."""
    from nearkin.train import kept_back

    classes = len(np.unique(validating))
    if not 0 < classes < kept_back.FEW:
        return []
    more = kept_back.remedy(settings, labels, WAY, kept_back.FEW)
    better = f"{more} to keep {kept_back.FEW} back" if more else f"{_LAST} to choose none"
    return [
        f"{settings.protocol} keeps {count(classes, 'class', 'classes')} back to validate, too few to choose an epoch by; "
        f"{better}, or add classes."
    ]


def _new(seen: set[str], *what: object) -> bool:
    """Whether this is seen for the first time."""
    key = json.dumps(what, sort_keys=True, default=str)
    known = key in seen
    seen.add(key)
    return not known


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

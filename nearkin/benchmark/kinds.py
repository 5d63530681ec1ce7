"""A benchmark that goes on on another kind of device than it began on mixes numbers of two precisions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nearkin import results
from nearkin.benchmark.job import Job
from nearkin.results import CPU, GPU
from nearkin.train.settings import Train
from nearkin.wording import count


def changed(jobs: Iterable[Job], out: Path, retry: bool = False) -> list[str]:
    """A sentence where runs that are left would be compared with finished ones of another kind of device; else nothing.

    ``retry``: those that were given up are left too. It is no error: what such runs are worth is for a person to say, and
    the verdict says it again.
    """
    jobs, recorded = list(jobs), results.known(out / results.FILE)
    done = [job.result(out) for job in jobs if job.finished(out)]
    left = [job for job in jobs if not job.finished(out) and (retry or job.id not in recorded)]
    for kind, other, precision in ((CPU, GPU, "float32 instead of bf16"), (GPU, CPU, "bf16 instead of float32")):
        here = [job for job in left if _here(job.settings) == kind]
        those = {(job.data, *_shape(job.settings)) for job in here}
        before = [result for result in done if result.device == other and result.experiment in those]
        if before:
            auto = any(job.settings.precision == "auto" for job in here)
            how = f", with precision auto in {precision}" if auto else ""
            them = f"{count(len(before), 'finished run')} in {out} {'was' if len(before) == 1 else 'were'}"
            return [
                f"{them} done on a {other}, what is left will be on a {kind}{how}: what differs may be the device and not "
                f"the loss; go on there, or give another folder with --out."
            ]
    return []


def _shape(settings: Train) -> tuple[str, int, str]:
    return settings.network, settings.dim, settings.protocol


def _here(settings: Train) -> str:
    """The kind of device of this machine that a run will be done on."""
    import torch

    return GPU if torch.cuda.is_available() and not settings.device.startswith("cpu") else CPU

"""Runs on a Ray cluster: an existing one by its address, or one started here.

Every machine of the cluster must have nearkin installed and see the folder of the benchmark and the images under the
same paths. Claims on runs are file locks, so the file system has to support them across machines.
"""

from __future__ import annotations

import socket
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nearkin.benchmark.board import Board
from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import perform
from nearkin.benchmark.schedule import PATIENCE, STOPPING, Schedule
from nearkin.results import Result
from nearkin.train.stop import Stop

INSTALL = "ray must be installed for executor ray, got none; run pip install 'nearkin[ray]', or use --executor local."


def one_run(folder: str, out: str, keep_checkpoints: bool, retry: bool, shared: int | None) -> dict[str, Any] | None:
    """An attempt at a run, on whatever machine it lands."""
    job = Job.load(Path(folder))
    result = perform(job, Path(out), keep_checkpoints=keep_checkpoints, retry=retry, shared=shared)
    return asdict(result) if result else None


def run(
    schedule: Schedule,
    board: Board,
    *,
    address: str = "",
    workers: int = 0,
    keep_checkpoints: bool = True,
    gpus: float | None = None,
) -> None:
    """Do all runs of a schedule. ``workers``: runs at a time, 0 as many as the cluster has room for; ``gpus`` of each.

    Ctrl-C lets every run save where it is, a second one stops them at once.
    """
    try:
        import ray
    except ImportError:
        raise ImportError(INSTALL) from None
    out = schedule.out.resolve()
    begun = not ray.is_initialized()
    if begun:
        _connect(ray, address, workers)
    have = ray.cluster_resources()
    share = (1.0 if have.get("GPU") else 0.0) if gpus is None else gpus
    room = max(1, int(have["GPU"] / share) if share else int(have.get("CPU", 1)))
    # How many runs one CPU has depends on the machine they land on, which nobody knows yet.
    shared = min(workers or room, max(1, int(1 / share))) if share else None
    # A crash of the process is for the schedule to judge, so that it is counted and named.
    task = ray.remote(num_cpus=1, num_gpus=share, max_retries=0, max_calls=0)(one_run)
    going: dict[Any, Job] = {}
    with Stop() as stop:  # after ray.init, which has its own idea of SIGTERM
        try:
            while schedule.open and not stop.asked:
                while len(going) < (workers or room) and not schedule.only_elsewhere and (order := schedule.next()):
                    words = (str(order.job.folder(out)), str(out), keep_checkpoints, order.retry, shared)
                    going[task.remote(*words)] = order.job
                    board.started(order.job)
                ready, _ = ray.wait(list(going), num_returns=1, timeout=1.0) if going else ([], [])
                for reference in ready:
                    job = going.pop(reference)
                    try:
                        found = ray.get(reference)
                        schedule.take(job, Result(**found) if found else None)
                    except ray.exceptions.RayError as error:
                        if stop.asked:  # who sent a signal to all processes has stopped this one too
                            continue
                        reason = str(error).strip().splitlines()[0]
                        schedule.lost(job, f"the worker of the cluster was lost: {type(error).__name__}: {reason}")
                    board.ended(job, schedule)
                board.show()
                if schedule.only_elsewhere:
                    time.sleep(2)
                    schedule.elsewhere.clear()
            if schedule.open:
                board.say(STOPPING)
            _let_go(ray, list(going))
        finally:
            if begun:
                ray.shutdown()
    if schedule.open:
        raise stop.kind


def _let_go(ray: Any, going: list[Any]) -> None:
    """Ask runs to stop and wait until they have saved."""
    for reference in going:
        ray.cancel(reference, force=False)
    if going:
        ray.wait(going, num_returns=len(going), timeout=PATIENCE, fetch_local=False)


def _connect(ray: Any, address: str, workers: int) -> None:
    import logging

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address:
            _knock(address)
            ray.init(address=address, **quiet)
        else:
            ray.init(num_cpus=workers or None, include_dashboard=False, **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"address must be that of a Ray cluster that answers, got {address!r}: {error}; "
            f"start one with ray start --head."
        ) from None


def _knock(address: str) -> None:
    """Raise at once where nobody listens: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()

"""Runs on a Ray cluster: an existing one by its address, or one started here.

Every machine of the cluster must have nearkin installed and see the folder of the benchmark and the images under the
same paths. Claims on runs are file locks, so the file system has to support them across machines.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nearkin.benchmark.board import ODD, Board
from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import perform
from nearkin.benchmark.ray_news import News, teller
from nearkin.benchmark.schedule import PATIENCE, STOPPING, Schedule
from nearkin.benchmark.worker import Teller
from nearkin.results import Result
from nearkin.train.stop import Stop

LAST_WORDS = 5.0
"""Seconds that the last messages of runs are waited for."""
INSTALL = "ray must be installed for executor ray, got none; run pip install 'nearkin[ray]', or use --executor local."
GONE = (
    "the Ray cluster must stay there until all runs are done, got its end: {}; runs that were not finished go on with the "
    "same command, see nearkin bench status {}."
)
REFUSED = (
    "address must be that of a Ray cluster whose token is known here, got {!r}, which refused; set RAY_AUTH_MODE=token, and "
    "RAY_AUTH_TOKEN to what ray get-auth-token prints where the cluster was started."
)


def address_of(given: str) -> str:
    """Where the cluster is that is to be used; empty: one is started here."""
    return given or os.environ.get("RAY_ADDRESS", "")


def one_run(
    folder: str, out: str, keep_checkpoints: bool, failures: int, shared: int | None, board: Any
) -> dict[str, Any] | None:
    """An attempt at a run, on whatever machine it lands; ``board`` is told how far it is."""
    job = Job.load(Path(folder))
    screen = Teller(teller(board, job.id))
    result = perform(job, Path(out), keep_checkpoints=keep_checkpoints, failures=failures, shared=shared, screen=screen)
    return asdict(result) if result else None


def run(
    schedule: Schedule,
    board: Board,
    *,
    address: str = "",
    workers: int = 0,
    keep_checkpoints: bool = True,
) -> None:
    """Do all runs of a schedule. ``workers``: runs at a time, 0 as many as the cluster has room for.

    Ctrl-C lets every run save where it is, a second one stops them at once.
    """
    address = address_of(address)
    _prepare(address)
    try:
        import ray
    except ImportError:
        raise ImportError(INSTALL) from None
    out = schedule.out.resolve()
    begun = not ray.is_initialized()
    if begun:
        _connect(ray, address, workers)
    have = ray.cluster_resources()
    gpus = int(have.get("GPU", 0))
    room = max(1, gpus or int(have.get("CPU", 1)))
    # How many runs one CPU has depends on the machine they land on, which nobody knows yet.
    shared = 1 if gpus else None
    # A crash of the process is for the schedule to judge, so that it is counted and named.
    task = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_retries=0, max_calls=0)(one_run)
    going: dict[Any, Job] = {}
    jobs = {order.job.id: order.job for order in schedule.waiting}
    news = News(ray)
    board.begin()  # not before the cluster has answered
    with Stop() as stop:  # after ray.init, which has its own idea of SIGTERM
        try:
            while schedule.open and not stop.asked:
                while len(going) < (workers or room) and (order := schedule.next()):
                    words = (str(order.job.folder(out)), str(out), keep_checkpoints, order.failures, shared)
                    going[task.remote(*words, news.board)] = order.job
                    board.started(order.job)
                if not going:  # other processes are at all that is left
                    time.sleep(0.25)
                ready = ray.wait(list(going), num_returns=1, timeout=1.0)[0] if going else []
                for reference in ready:
                    job = going.pop(reference)
                    try:
                        found = ray.get(reference)
                        schedule.take(job, Result(**found) if found else None)
                    except ray.exceptions.RayError as error:
                        if stop.asked:  # who sent a signal to all processes has stopped this one too
                            continue
                        # Of an error in Python the last line says what it was, of the cluster's own the first.
                        reason = str(error).strip().splitlines()[-isinstance(error, ray.exceptions.RayTaskError)]
                        if _is_gone(ray, error):
                            raise ConnectionError(GONE.format(reason.rstrip("."), schedule.out)) from None
                        schedule.lost(job, f"the worker of the cluster was lost: {type(error).__name__}: {reason}")
                    board.ended(job, schedule)
                _hear(news, board, jobs, going)
                board.show()
            if schedule.open:
                board.say(STOPPING)
            _let_go(ray, list(going))
            for _ in range(2):  # what was asked for before, and what runs that were soon done have told since
                _hear(news, board, jobs, going, LAST_WORDS)
        finally:
            schedule.gather()
            if begun:
                ray.shutdown()
    if schedule.open:
        raise stop.kind


def _hear(news: News, board: Board, jobs: dict[str, Job], going: dict[Any, Job], patience: float = 0.0) -> None:
    """Hand on what runs told: how far they are while they go on, what is odd also later."""
    running = {job.id for job in going.values()}
    for run, message in news.read(patience):
        if run in running or message["kind"] == ODD:
            board.heard(jobs[run], message)


def _is_gone(ray: Any, error: Exception) -> bool:
    """Whether no run can be done any more: the machine that this process is on has left the cluster, or the last has."""
    if isinstance(error, ray.exceptions.LocalRayletDiedError):
        return True
    try:
        return not any(node["Alive"] for node in ray.nodes())
    except Exception:
        return True


def _let_go(ray: Any, going: list[Any]) -> None:
    """Ask runs to stop and wait until they have saved."""
    for reference in going:
        ray.cancel(reference, force=False)
    if going:
        ray.wait(going, num_returns=len(going), timeout=PATIENCE, fetch_local=False)


def _connect(ray: Any, address: str, workers: int) -> None:
    import logging

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:  # one of its own, whatever else runs on this machine
        try:
            ray.init(address="local", num_cpus=workers or None, include_dashboard=False, **quiet)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise ValueError(f"ray must be able to start here, got {error}; try --executor local.") from None
        return
    try:
        _knock(address)
        with _hushed():
            ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        if _refused(ray, error):
            raise ValueError(REFUSED.format(address)) from None
        raise ValueError(
            f"address must be that of a Ray cluster that answers, got {address!r}: {error}; "
            f"start one with ray start --head."
        ) from None


def _prepare(address: str) -> None:
    """Let Ray send its token, which it decides when it is imported."""
    # Ray sends its token to no address that it is given; to one of this machine it may go.
    if address and "RAY_AUTH_MODE" not in os.environ and _has_token() and _is_here(address):
        os.environ["RAY_AUTH_MODE"] = "token"


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Keep Ray's own lines from the error stream: it tells a refusal every second, past Python."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _has_token() -> bool:
    """Whether there is a token of Ray's; clusters that are started where there is one ask for it."""
    named = os.environ.keys() & {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
    return bool(named) or (Path.home() / ".ray" / "auth_token").exists()


def _is_here(address: str) -> bool:
    """Whether an address is one of this machine: only such a one can be listened at."""
    host = address.rpartition(":")[0].rpartition("/")[2].strip("[]")
    try:
        family, kind, _, _, (name, *_) = socket.getaddrinfo(host or address, None, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind((name, 0))
    except OSError:
        return False
    return True


def _refused(ray: Any, error: BaseException) -> bool:
    """Whether a cluster did not accept the token it got, or got none."""
    causes = [error, error.__cause__]
    return any(isinstance(cause, ray.exceptions.AuthenticationError) or "AuthToken" in str(cause) for cause in causes)


def _knock(address: str) -> None:
    """Raise at once where nobody listens: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()

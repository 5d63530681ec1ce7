"""Which run comes next, and what becomes of one that fails; the same for every executor."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nearkin import results
from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import record
from nearkin.results import Result

PAUSE = 2.0
"""Seconds until a run that another process is at is asked for again."""
PATIENCE = 60.0
"""Seconds in which interrupted runs may save where they are."""
STOPPING = "stopping; runs save where they are, Ctrl-C again stops them at once ..."


@dataclass(frozen=True)
class Order:
    """A run to be done now, although it failed so many times before; has it failed more often, another process tried it."""

    job: Job
    failures: int = 0


class Schedule:
    """Hands out runs and takes in what came of them.

    A run that fails is tried again up to ``retries`` times, after the others, also after an interruption; then it is
    recorded as failed. One that another process is at is asked for again after a pause.
    """

    def __init__(self, jobs: Iterable[Job], out: Path, retries: int, retry_failed: bool = False) -> None:
        self.out, self.retries = out, retries
        self.waiting: list[Order] = []
        self.running: dict[str, Order] = {}
        self.later: dict[str, float] = {}
        self.finished: dict[str, Result] = {}
        # Failures that were recorded, or that a person wants tried again, count no more.
        self.forgiven: dict[str, int] = {}
        self.given_up: set[str] = set()
        recorded = results.known(out / results.FILE)
        for job in jobs:
            if job.finished(out):
                job.result(out)  # a damaged file is found before any work is done
            failed = len(job.failures(out))
            over = job.id in recorded and not recorded[job.id].done
            self.forgiven[job.id] = failed if over or retry_failed else 0
            again = retry_failed or (not over and failed <= retries)
            self.waiting.append(Order(job, failed if again else 0))
            if failed and not again and not job.finished(out):
                self.given_up.add(job.id)

    @property
    def open(self) -> bool:
        return bool(self.waiting or self.running)

    def next(self) -> Order | None:
        """The next run, or None if there is none to start now."""
        now = time.monotonic()
        for place, order in enumerate(self.waiting):
            if self.later.get(order.job.id, now) <= now:
                del self.waiting[place]
                self.running[order.job.id] = order
                order.job.save(self.out)
                return order
        return None

    def take(self, job: Job, result: Result | None) -> None:
        """What an attempt gave: a result, or None where another process has the run."""
        order = self.running.pop(job.id)
        if result is None:
            self.later[job.id] = time.monotonic() + PAUSE
            self.waiting.append(order)
            return
        failed = len(job.failures(self.out))
        if not result.done and 0 < failed - self.forgiven[job.id] <= self.retries:
            self.waiting.append(Order(job, failed))
        else:
            self._record(result)

    def lost(self, job: Job, reason: str) -> None:
        """The process that was at a run is gone."""
        job.note_failure(self.out, reason)
        self.take(job, job.result(self.out))

    def gather(self) -> None:
        """Record runs that finished while all were asked to stop, so that nobody waited for what they said."""
        for order in list(self.running.values()):
            if order.job.finished(self.out):
                self.take(order.job, order.job.result(self.out))

    def _record(self, result: Result) -> None:
        self.finished[result.id] = result
        record(self.out, result)

"""Which run comes next, and what becomes of one that fails; the same for every executor."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import record
from nearkin.results import Result

PATIENCE = 60.0
"""Seconds in which interrupted runs may save where they are."""
STOPPING = "stopping; runs save where they are, Ctrl-C again stops them at once ..."


@dataclass(frozen=True)
class Order:
    """A run to be done now; ``retry`` if it is to be tried although it failed before."""

    job: Job
    retry: bool


class Schedule:
    """Hands out runs and takes in what came of them.

    A run that fails is tried again up to ``retries`` times, after the others; then it is recorded as failed. One that
    another process is at comes back to the end of the line.
    """

    def __init__(self, jobs: Iterable[Job], out: Path, retries: int, retry_failed: bool = False) -> None:
        self.out, self.retries = out, retries
        self.waiting = deque(Order(job, retry_failed) for job in jobs)
        self.running: dict[str, Order] = {}
        self.tries: dict[str, int] = {}
        self.elsewhere: set[str] = set()
        self.finished: dict[str, Result] = {}
        for order in self.waiting:
            if order.job.finished(out):
                order.job.result(out)  # a damaged file is found before any work is done

    @property
    def open(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def only_elsewhere(self) -> bool:
        """Whether all that is left is being done by other processes: ask again in a while."""
        return bool(self.waiting) and not self.running and all(o.job.id in self.elsewhere for o in self.waiting)

    def next(self) -> Order | None:
        """The next run, or None if there is none to start now."""
        if not self.waiting:
            return None
        order = self.waiting.popleft()
        self.running[order.job.id] = order
        order.job.save(self.out)
        return order

    def take(self, job: Job, result: Result | None) -> None:
        """What an attempt gave: a result, or None where another process has the run."""
        order = self.running.pop(job.id)
        if result is None:
            self.elsewhere.add(job.id)
            self.waiting.append(order)
            return
        self.elsewhere.discard(job.id)
        if result.done:
            self._record(result)
            return
        self.tries[job.id] = self.tries.get(job.id, 0) + 1
        # A failure of the past that was not tried now is not tried again either.
        if self.tries[job.id] <= self.retries and (order.retry or self._fresh(job)):
            self.waiting.append(Order(job, True))
        else:
            self._record(result)

    def lost(self, job: Job, reason: str) -> None:
        """The process that was at a run is gone."""
        job.note_failure(self.out, reason)
        order = self.running.get(job.id)
        if order is not None:
            self.running[job.id] = Order(job, True)
        self.take(job, job.result(self.out))

    def gather(self) -> None:
        """Record runs that finished while all were asked to stop, so that nobody waited for what they said."""
        for order in list(self.running.values()):
            if order.job.finished(self.out):
                self.take(order.job, order.job.result(self.out))

    def wait_for_others(self) -> None:
        """Where all that is left is done by other processes, wait a while before asking for it again."""
        if self.only_elsewhere:
            time.sleep(2)
            self.elsewhere.clear()

    def _fresh(self, job: Job) -> bool:
        return len(job.failures(self.out)) <= self.tries[job.id]

    def _record(self, result: Result) -> None:
        self.finished[result.id] = result
        record(self.out, result)

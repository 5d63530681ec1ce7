"""Runs on this machine: one worker process for each device, or a number of them."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nearkin.benchmark.board import Board
from nearkin.benchmark.job import Job
from nearkin.benchmark.schedule import Order, Schedule
from nearkin.results import Result

PATIENCE = 60.0
"""Seconds in which interrupted workers may save what they are at."""


class Worker:
    """A process and the run it is at."""

    def __init__(self, number: int, out: Path, device: str | None) -> None:
        self.job: Job | None = None
        self.rest = b""
        log = out / "workers"
        log.mkdir(parents=True, exist_ok=True)
        self.log = (log / f"{number}.log").open("ab")
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        if device is not None:
            environment["CUDA_VISIBLE_DEVICES"] = device
        words = [sys.executable, "-m", "nearkin.benchmark.worker", str(out)]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def order(self, order: Order, out: Path, keep_checkpoints: bool, shared: int) -> None:
        self.job = order.job
        assert self.process.stdin is not None
        wishes = {"keep_checkpoints": keep_checkpoints, "retry": order.retry, "shared": shared}
        words = {"folder": str(order.job.folder(out)), **wishes}
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def heard(self) -> tuple[list[dict[str, Any]], bool]:
        """What the worker has said since, and whether it is gone."""
        assert self.process.stdout is not None
        data = self.process.stdout.read()
        if data is None:
            return [], False
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in lines], data == b""

    def end(self) -> str:
        """Let it go; how it ended."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.log.close()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def devices(workers: int) -> list[str | None]:
    """What each worker sees: a GPU of its own where there are any, else all share the CPU. 0: one for each GPU."""
    import torch

    count = torch.cuda.device_count()
    if not count:
        return [None] * max(1, workers)
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [name for name in shown.split(",") if name] if shown else [str(number) for number in range(count)]
    return [names[number % count] for number in range(workers or count)]


def sharing(seats: Sequence[str | None], seat: str | None, device: str = "auto") -> int:
    """How many workers do their runs on the device of one of them; runs on the CPU share it with all.

    >>> sharing(["0", "1", "0"], "0"), sharing(["0", "1", "0"], "1"), sharing(["0", "1", "0"], "1", "cpu")
    (2, 1, 3)
    """
    return len(seats) if device == "cpu" else seats.count(seat)


def run(schedule: Schedule, board: Board, *, workers: int = 0, keep_checkpoints: bool = True) -> None:
    """Do all runs of a schedule. Ctrl-C lets every worker save where it is."""
    out = schedule.out.resolve()
    seats = devices(workers)[: max(1, len(schedule.waiting))]
    staff = [Worker(number, out, device) for number, device in enumerate(seats)]
    ear = selectors.DefaultSelector()
    for number, worker in enumerate(staff):
        ear.register(worker.process.stdout, selectors.EVENT_READ, number)  # type: ignore[arg-type]
    try:
        while schedule.open:
            for worker, seat in zip(staff, seats, strict=True):
                if worker.job is None and not schedule.only_elsewhere and (order := schedule.next()):
                    worker.order(order, out, keep_checkpoints, sharing(seats, seat, order.job.settings.device))
                    board.started(order.job)
            for key, _ in ear.select(timeout=1.0):
                number = key.data
                worker = staff[number]
                messages, gone = worker.heard()
                for message in messages:
                    _hear(schedule, board, worker, message)
                if gone:
                    ear.unregister(key.fileobj)
                    how = worker.end()
                    if worker.job is not None:
                        schedule.lost(worker.job, f"the worker process ended with {how}; see workers/{number}.log")
                        board.ended(worker.job, schedule)
                    staff[number] = Worker(number, out, seats[number])
                    ear.register(staff[number].process.stdout, selectors.EVENT_READ, number)
            board.show()
            if schedule.only_elsewhere:
                time.sleep(2)
                schedule.elsewhere.clear()
    except KeyboardInterrupt:
        board.say("stopping; runs save where they are ...")
        _interrupt(staff)
        raise
    finally:
        for worker in staff:
            if worker.process.poll() is None or not worker.log.closed:
                worker.end()
        ear.close()


def _hear(schedule: Schedule, board: Board, worker: Worker, message: dict[str, Any]) -> None:
    job = worker.job
    assert job is not None
    if message["kind"] == "result":
        worker.job = None
        schedule.take(job, Result(**message["result"]) if message["result"] else None)
        board.ended(job, schedule)
    else:
        board.heard(job, message)


def _interrupt(staff: list[Worker]) -> None:
    """Ask every worker to save; those that do not end in time are ended."""
    for worker in staff:
        if worker.process.poll() is None:
            worker.process.send_signal(signal.SIGINT)
    last = time.monotonic() + PATIENCE
    while any(worker.process.poll() is None for worker in staff) and time.monotonic() < last:
        for worker in staff:
            worker.heard()  # so that none of them waits for a reader
        time.sleep(0.05)
    for worker in staff:
        if worker.process.poll() is None:
            worker.process.kill()

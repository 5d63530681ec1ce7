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
from nearkin.benchmark.schedule import PATIENCE, STOPPING, Order, Schedule
from nearkin.results import Result
from nearkin.train.stop import Stop


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
        # In a session of its own, so that Ctrl-C reaches it once, through its input.
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def order(self, order: Order, out: Path, keep_checkpoints: bool, shared: int) -> None:
        self.job = order.job
        assert self.process.stdin is not None
        wishes = {"keep_checkpoints": keep_checkpoints, "failures": order.failures, "shared": shared}
        words = {"folder": str(order.job.folder(out)), **wishes}
        with contextlib.suppress(BrokenPipeError):  # it has ended; what is heard of it next says so
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

    def drain(self) -> None:
        """Read what it says and forget it, so that it does not wait for a reader."""
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.process.stdout.read()

    def close(self) -> None:
        """Say that there is nothing more to do; a run that it is at saves and ends."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self) -> int:
        """Let it go; the code it ended with."""
        self.close()
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.log.close()
        return code


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
    """Do all runs of a schedule. Ctrl-C lets every worker save where it is, a second one stops them at once."""
    out = schedule.out.resolve()
    seats = devices(workers)[: max(1, len(schedule.waiting))]
    board.begin()
    with Stop() as stop, selectors.DefaultSelector() as ear:
        staff = [Worker(number, out, device) for number, device in enumerate(seats)]
        for number, worker in enumerate(staff):
            ear.register(worker.process.stdout, selectors.EVENT_READ, number)  # type: ignore[arg-type]
        try:
            while schedule.open and not stop.asked:
                for worker, seat in zip(staff, seats, strict=True):
                    if worker.job is None and (order := schedule.next()):
                        worker.order(order, out, keep_checkpoints, sharing(seats, seat, order.job.settings.device))
                        board.started(order.job)
                for key, _ in ear.select(timeout=0.25):
                    number = key.data
                    worker = staff[number]
                    messages, gone = worker.heard()
                    for message in messages:
                        _hear(schedule, board, worker, message)
                    if gone:
                        ear.unregister(key.fileobj)
                        code = worker.end()
                        if stop.asked:  # who sent a signal to all processes has stopped this one too
                            continue
                        if worker.job is not None:
                            how = f"the worker process ended with {_named(code)}; see workers/{number}.log"
                            schedule.lost(worker.job, how)
                            board.ended(worker.job, schedule)
                        staff[number] = Worker(number, out, seats[number])
                        ear.register(staff[number].process.stdout, selectors.EVENT_READ, number)
                board.show()
            if schedule.open:
                board.say(STOPPING)
        except KeyboardInterrupt:
            _kill(staff)
            raise
        finally:
            try:
                _let_go(staff)
            finally:
                schedule.gather()
    if schedule.open:
        raise stop.kind


def _hear(schedule: Schedule, board: Board, worker: Worker, message: dict[str, Any]) -> None:
    job = worker.job
    assert job is not None
    if message["kind"] == "result":
        worker.job = None
        schedule.take(job, Result(**message["result"]) if message["result"] else None)
        board.ended(job, schedule)
    else:
        board.heard(job, message)


def _named(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _let_go(staff: list[Worker]) -> None:
    """Let every worker save and end; those that do not in time, and all of them at another Ctrl-C, are ended."""
    for worker in staff:
        worker.close()
    last = time.monotonic() + PATIENCE
    try:
        while any(worker.process.poll() is None for worker in staff) and time.monotonic() < last:
            for worker in staff:
                worker.drain()
            time.sleep(0.05)
    finally:
        _kill(staff)
        for worker in staff:
            worker.end()


def _kill(staff: list[Worker]) -> None:
    for worker in staff:
        if worker.process.poll() is None:
            worker.process.kill()

"""Several processes on one study: begun, shown, replaced where one dies, stopped in good order."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from nearkin.train.stop import Stop
from nearkin.tune import files
from nearkin.tune.attempt import WAITING
from nearkin.tune.show import Show
from nearkin.tune.study import DIED, Study
from nearkin.tune.worker import STOPPED, tell

COMMAND = (sys.executable, "-m", "nearkin.tune.worker")
EVERY = 0.2
SWEEP = 5.0
PATIENCE = 60.0  # seconds for a step to end and its checkpoint to be written


@dataclass
class Worker:
    name: str
    process: subprocess.Popen[bytes]
    log: Path


def go(study: Study, given: dict[str, Any], processes: int, show: Show) -> None:
    """Run the study with so many processes until nothing is left."""
    crew = _Crew(study, given, show)
    with Stop() as stop:
        try:
            for place in range(processes):
                crew.start(place)
            while not stop.asked and (crew.workers or crew.waiting()):
                if not crew.workers:
                    crew.start(0)
                time.sleep(EVERY)
                crew.look()
        except KeyboardInterrupt:
            crew.patience = 0.0
            raise
        finally:
            crew.stop()
    if stop.asked:
        raise stop.kind


class _Crew:
    def __init__(self, study: Study, given: dict[str, Any], show: Show) -> None:
        self.study, self.given, self.show = study, given, show
        self.workers: dict[int, Worker] = {}
        self.shown = {loss: {entry.number for entry in study.attempts(loss) if entry.finished} for loss in study.plans}
        self.swept = time.monotonic()
        self.patience = PATIENCE

    def start(self, place: int) -> None:
        """A process that computes on the device and threads of its place."""
        name = f"{os.getpid()}-{place}-{secrets.token_hex(3)}"
        log = self.study.workers / f"{name}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )
        job = {"given": {**self.given, **placed(self.given, place)}, "images": self.study.images, "worker": name}
        pipe: IO[bytes] = process.stdin  # type: ignore[assignment]
        try:
            pipe.write(json.dumps(job).encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:  # it is gone already; the next look tells why
            pass
        self.workers[place] = Worker(name, process, log)

    def look(self) -> None:
        """Show what is new; see to processes that have ended."""
        self._show()
        for place, worker in list(self.workers.items()):
            code = worker.process.poll()
            if code is not None:
                del self.workers[place]
                self._ended(place, worker, code)
        if time.monotonic() - self.swept > SWEEP:
            self.sweep()

    def sweep(self, ended: str = "", reason: str = DIED) -> None:
        """Let trials of lost processes wait for others, those too of processes that another command began."""
        with self.study.alone():
            own = {worker.name for worker in self.workers.values()}  # the next look tells how these ended
            self.study.sweep(lambda name: reason if name == ended else "" if name in own else DIED)
        files.write(self.study)
        self.swept = time.monotonic()

    def waiting(self) -> bool:
        """Whether a trial was lost that nobody has taken up."""
        self.sweep()
        return any(entry.status == WAITING for loss in self.study.plans for entry in self.study.current(loss))

    def _show(self) -> None:
        for loss in self.study.plans:
            for attempt in self.study.attempts(loss):
                if attempt.finished and attempt.number not in self.shown[loss]:
                    self.shown[loss].add(attempt.number)
                    tell(self.study, loss, attempt.number, self.show)

    def _ended(self, place: int, worker: Worker, code: int) -> None:
        last = _last_line(worker.log)
        _close(worker)
        if code in (0, STOPPED):
            return
        if code == 2:
            raise ValueError(last or "a process of the study could not go on.")
        # It died: its trial waits for another process, which is begun in its place.
        signal = f" by signal {-code}" if code < 0 else f" with code {code}"
        busy = any(entry.worker == worker.name for loss in self.study.plans for entry in self.study.attempts(loss))
        if not busy:
            raise ValueError(
                f"a process of the study must come to a trial, got its end{signal} before ({last or 'it said nothing'}); "
                f"try with --processes 1."
            )
        self.sweep(worker.name, f"{DIED}{signal}{f' ({last})' if last else ''}")
        self.start(place)

    def stop(self) -> None:
        """Ask all to stop; those that do not within a minute are ended, and all of them at another Ctrl-C."""
        for worker in self.workers.values():
            if worker.process.stdin:
                with contextlib.suppress(BrokenPipeError):  # it was gone before it had read what to do
                    worker.process.stdin.close()
        until = time.monotonic() + self.patience
        for worker in self.workers.values():
            try:
                worker.process.wait(max(0.1, until - time.monotonic()))
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                until = 0.0
                worker.process.kill()
                worker.process.wait()
            _close(worker)
        self._show()


def placed(given: dict[str, Any], place: int) -> dict[str, Any]:
    """The device of the process at a place, one after the other, and its share of the CPU."""
    import torch

    found: dict[str, Any] = {}
    device = given.get("device", "auto")
    if device in ("auto", "cuda") and torch.cuda.is_available():
        found["device"] = f"cuda:{place % torch.cuda.device_count()}"
    elif not given.get("threads"):
        found["threads"] = max(1, cores() // int(given.get("processes", 1)))
    return found


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _close(worker: Worker) -> None:
    if worker.process.stdin:
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            worker.process.stdin.close()
    worker.log.unlink(missing_ok=True)


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else ""

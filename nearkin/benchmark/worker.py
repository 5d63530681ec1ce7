"""A process that does runs: it reads the folder of a run from its input, a line each, and answers with lines of JSON.

    python -m nearkin.benchmark.worker OUT

It is started by ``nearkin bench``; what a run prints goes to the error stream. When its input ends, also because the
process that began it is gone, the run that it is at saves and ends.
"""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nearkin.benchmark.board import ODD
from nearkin.benchmark.job import Job
from nearkin.benchmark.perform import perform
from nearkin.train.screen import Bad, Screen, Tell, unreadable
from nearkin.train.stop import ask, terminable

Say = Callable[[dict[str, Any]], None]
EVERY = 0.5
"""Seconds between two steps that are told of."""


class Teller(Screen):
    """Tells how far a run is, a few times a second at most."""

    def __init__(self, say: Say) -> None:
        self.say, self.last, self.steps = say, 0.0, 0
        self.begun, self.first = time.monotonic(), 0

    @contextmanager
    def job(self, text: str) -> Iterator[Tell]:
        self.say({"kind": "note", "text": text})
        yield lambda done, total: None

    def begin(self, settings: Any, steps: int, step: int, model: Any, sizes: Any, bad: Bad) -> None:
        if bad:
            self.say({"kind": ODD, "text": unreadable(bad)})
        self.steps, self.first, self.begun = steps, step, time.monotonic()

    def step(self, step: int, record: dict[str, Any], size: int) -> None:
        now = time.monotonic()
        if now - self.last >= EVERY:
            self.last = now
            rate = (step - self.first) * size / max(now - self.begun, 1e-9)
            self.say({"kind": "step", "step": step, "steps": self.steps, "rate": rate})


class Orders:
    """The lines of the input, heard while a run goes on, so that it stops when the input ends."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.busy = self.ended = False
        threading.Thread(target=self._listen, daemon=True).start()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while line := self.heard.get():
            self.busy = True
            if self.ended:
                return
            yield json.loads(line)
            self.busy = False

    def _listen(self) -> None:
        # Not sys.stdin, whose lock a process cannot end without.
        for line in io.FileIO(0, closefd=False):
            self.heard.put(line)
        self.ended = True
        self.heard.put(b"")
        if self.busy:
            ask()


def main(out: Path) -> int:
    """Answer lines until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that no print of a run mixes with the answers

    def say(message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # nobody listens; the end of the input tells the run
            answers.write(json.dumps(message).encode() + b"\n")
            answers.flush()

    try:
        with terminable():
            for order in Orders():
                job = Job.load(Path(order["folder"]))
                wishes = {name: order[name] for name in ("keep_checkpoints", "failures", "shared")}
                result = perform(job, out, **wishes, screen=Teller(say))
                say({"kind": "result", "result": asdict(result) if result else None})
    except KeyboardInterrupt:
        return 130
    finally:
        with suppress(BrokenPipeError):
            answers.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

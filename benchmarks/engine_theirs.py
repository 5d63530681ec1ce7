"""The other library, measured in a process of its own: a call that hangs on the GPU hears no signal, but can be killed."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from typing import Any

from engine_measures import LATE, PATIENCE

Line = Any  # a connection is generic for those who check types alone

START = 120
"""Seconds in which the process must be ready."""
SPARE = 5
"""Seconds for what lies around a measurement."""


class Theirs:
    """The process, started with the first question, and anew after one that it was killed over.

    A question is a loss and the size of a batch, an answer what was measured, or None where the process does not start.
    """

    def __init__(self, *command: str, patience: float = PATIENCE + SPARE) -> None:
        self.command, self.patience = command or (sys.executable, __file__), patience
        self.process: subprocess.Popen[bytes] | None = None
        self.line: Line | None = None
        self.broken = False

    def __enter__(self) -> Theirs:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def measured(self, entry: str, n: int) -> dict[str, Any] | None:
        if self.line is None:
            self._start()
        if self.line is None or self.broken:
            return None
        try:
            self.line.send((entry, n))
            if self.line.poll(self.patience):
                return dict(self.line.recv())
            found = {"unfinished": LATE}
        except (EOFError, OSError):
            found = {"unfinished": "its process ended"}
        self.end()
        return found

    def _start(self) -> None:
        """Start the process, once more only if it was ready before: what fails to start would fail again."""
        if self.broken:
            return
        self.line, other = Pipe()
        with other:
            command = [*self.command, str(other.fileno())]
            self.process = subprocess.Popen(command, pass_fds=[other.fileno()])
        try:
            self.broken = not self.line.poll(START) or self.line.recv() != "ready"
        except (EOFError, OSError):
            self.broken = True
        if self.broken:
            self.end()
            print("the process of the other library did not start", flush=True)

    def end(self) -> None:
        if self.line:
            self.line.close()
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = self.line = None


def answer(line: Any) -> None:
    """Answer questions until nobody asks any more."""
    import torch
    from engine_compared import Step, batch, theirs
    from engine_measures import measured

    torch.zeros(1, device="cuda")
    line.send("ready")
    while True:
        try:
            entry, n = line.recv()
        except EOFError:
            return
        loss = theirs(entry, n)
        assert loss is not None
        line.send(measured(Step(loss, *batch(n)), compiles=False))
        del loss
        torch.cuda.empty_cache()  # what is kept here is memory that ours lacks


if __name__ == "__main__":
    answer(Connection(int(sys.argv[1])))

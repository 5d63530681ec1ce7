"""Looking at every image of a table, in several processes, in order."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin.data.decoders import cores
from nearkin.data.doctor import worker
from nearkin.data.doctor.facts import Header
from nearkin.data.doctor.fingerprints import COLOUR_SIDE, GREY_SIDE
from nearkin.data.doctor.picture import Facts, Prints, Wanted

Source = Path | NDArray[np.uint8]
Seen = tuple[Facts, Prints | None]

AHEAD = 64
"""Images looked at beyond the one that is awaited; bounds memory when embedding is slower than decoding."""

CRASHED = Facts(failure=("unreadable", "the decoder crashes on it"))


def survey(sources: Sequence[Source], wanted: Wanted, workers: int | None = None) -> Generator[Seen, None, None]:
    """Facts and prints of every image, in order. ``workers``: processes; None: one per core this program may use."""
    count = max(1, min(workers or cores(), len(sources)))
    team = _Team(count, wanted)
    with ThreadPoolExecutor(count) as threads:
        waiting: deque[Future[Seen]] = deque()
        try:
            for source in sources:
                waiting.append(threads.submit(team.look, source))
                if len(waiting) >= AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # Reached early by an interruption, or when the reader stops: threads that wait for answers must wake.
            for future in waiting:
                future.cancel()
            team.close()


class _Team:
    """Worker processes; each request takes an idle one. One that dies is replaced."""

    def __init__(self, count: int, wanted: Wanted) -> None:
        self._wanted = wanted
        self._closed = False
        self._lock = Lock()  # between closing and replacing a member
        self._members: list[_Member] = []
        self._idle: SimpleQueue[_Member] = SimpleQueue()
        for _ in range(count):
            self._hire()

    def _hire(self) -> None:
        member = _Member(self._wanted)
        self._members.append(member)
        self._idle.put(member)

    def _replace(self, member: _Member) -> None:
        with self._lock:
            if self._closed:
                self._idle.put(member)  # dead, and whoever takes it learns so
                return
            member.stop()
            self._members.remove(member)
            self._hire()

    def look(self, source: Source) -> Seen:
        member = self._idle.get()
        if not member.starts():
            self._idle.put(member)  # so that nobody waits for it
            if self._closed:
                return CRASHED, None
            raise RuntimeError(
                f"worker processes of the doctor must start, got exit status {member.stop()} from {worker.__file__}; "
                f"run this file with Python to see why."
            )
        answer = member.ask(source)
        if answer is None:
            self._replace(member)
            return CRASHED, None
        self._idle.put(member)
        return answer

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for member in self._members:
                member.stop()


class _Member:
    """One worker process."""

    def __init__(self, wanted: Wanted) -> None:
        settings = json.dumps({"path": sys.path, "wanted": asdict(wanted)})
        self._started = False
        self._wanted = wanted
        # -P: this package's files must not stand in for library modules of the same names.
        self._process = subprocess.Popen(
            [sys.executable, "-P", worker.__file__, settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def starts(self) -> bool:
        """Wait until the process is ready; False: it has died before."""
        if not self._started:
            assert self._process.stdout is not None
            try:
                self._started = worker.Message.read(self._process.stdout) is not None
            except (OSError, ValueError):  # closed by ``stop``
                return False
        return self._started

    def ask(self, source: Source) -> Seen | None:
        """What the process says about an image; None: it is dead."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            if isinstance(source, np.ndarray):
                pixels = np.ascontiguousarray(source, np.uint8)
                worker.Message.write(self._process.stdin, {"shape": pixels.shape}, pixels.tobytes())
            else:
                worker.Message.write(self._process.stdin, {"path": os.fspath(source)})
            answer = worker.Message.read(self._process.stdout)
        except (OSError, ValueError):  # its pipe is broken, or closed by ``stop``
            return None
        if answer is None:
            return None
        return _facts(answer[0]["facts"]), self._prints(*answer)

    def _prints(self, values: dict[str, Any], content: bytes) -> Prints | None:
        if "hash" not in values:
            return None
        crop = self._wanted.crop
        ends = np.cumsum([GREY_SIDE**2, 3 * COLOUR_SIDE**2, 3 * crop**2])
        grey, colour, picture, features = np.split(np.frombuffer(content, np.uint8), ends)
        return Prints(
            values["hash"],
            values["mirror"],
            grey.reshape(GREY_SIDE, GREY_SIDE),
            colour.reshape(COLOUR_SIDE, COLOUR_SIDE, 3),
            picture.reshape(crop, crop, 3) if crop else picture,
            features.view(np.float32) if self._wanted.describe else np.empty(0, np.float32),
        )

    def stop(self) -> int:
        self._process.kill()
        status = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was still in its buffer has nowhere to go
                    stream.close()
        return status


def _facts(values: dict[str, Any]) -> Facts:
    header, failure = values.pop("header"), values.pop("failure")
    return Facts(
        header=None if header is None else Header(**header),
        failure=None if failure is None else (failure[0], failure[1]),
        **values,
    )

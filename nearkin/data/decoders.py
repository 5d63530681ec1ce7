"""Processes that decode image files side by side.

They are plain interpreters that run `decode.py` and nothing else. So they start in a fraction of a second, load
neither torch nor the caller's program (which needs no guard around its main part), and a file that crashes the decoder
takes down one of them, which names the file: with a pool of the standard library the whole run would end, and nobody
would know why.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from nearkin.data import decode
from nearkin.data.decode import HEADER, BadImage, Bytes, read_image

CANNOT = "workers must be able to start {} to decode images, got {} from it; use workers=0 to decode in this process."

Images = Generator["Bytes | BadImage", None, None]

FEW = 64
"""Up to this many files are decoded in the calling process, unless workers are asked for."""


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_images(paths: Sequence[Path], *, side: int | None, workers: int | None = None) -> Images:
    """Each image in turn, or what is wrong with it; see ``read_image``.

    ``workers``: processes that decode; 0 decodes in this one; None takes one per core, 0 for few files. A few
    images per worker are in memory at a time. Closing the iterator ends the processes.
    """
    if workers is None:
        workers = 0 if len(paths) <= FEW or cores() == 1 else cores()
    workers = min(workers, len(paths))
    return _in_parallel(paths, side, workers) if workers else _in_turn(paths, side)


def _in_turn(paths: Sequence[Path], side: int | None) -> Images:
    for path in paths:
        try:
            yield read_image(path, side=side)
        except BadImage as bad:
            yield bad


def _in_parallel(paths: Sequence[Path], side: int | None, workers: int) -> Images:
    # Large images that are not shrunk may not pile up behind a slow one.
    most = workers * (8 if side else 2)
    with Decoders(workers, side) as decoders:
        # One thread waits for each process; threads end when their process does.
        threads = ThreadPoolExecutor(workers, "nearkin-decoder")
        waiting: deque[Future[Bytes | BadImage]] = deque()
        try:
            for path in paths:
                if len(waiting) == most:
                    yield waiting.popleft().result()
                waiting.append(threads.submit(decoders.read, path))
            while waiting:
                yield waiting.popleft().result()
        finally:
            decoders.close()
            threads.shutdown(wait=True, cancel_futures=True)


class Decoders:
    """``count`` processes that decode; ``read`` may be called by as many threads at once."""

    def __init__(self, count: int, side: int | None) -> None:
        self._side = side
        self._lock = threading.Lock()
        self._closed = False
        self._all: list[_Decoder] = []
        self._free: queue.SimpleQueue[_Decoder] = queue.SimpleQueue()
        try:
            started = [self._start() for _ in range(count)]
            for decoder in started:
                decoder.wait_until_ready()
                self._free.put(decoder)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Decoders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, path: Path) -> Bytes | BadImage:
        """The image, or what is wrong with it: a decoder that dies twice on a file is taken as the file's fault."""
        decoder = self._free.get()
        code = 0
        try:
            for _ in range(2):
                try:
                    return decoder.read(path)
                except (OSError, EOFError):
                    code = decoder.end(patience=2)
                    if self._closed:
                        break
                    decoder = self._start()
                    decoder.wait_until_ready()
        finally:
            self._free.put(decoder)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return BadImage(str(path), f"it crashes the decoder ({how})")

    def _start(self) -> _Decoder:
        with self._lock:
            if self._closed:
                raise RuntimeError("the decoders are closed")  # seen by a thread that nobody listens to any more
            decoder = _Decoder(self._side)
            self._all.append(decoder)
        return decoder

    def close(self) -> None:
        """End the processes; threads inside ``read`` come back at once."""
        with self._lock:
            self._closed = True
        while self._all:
            self._all.pop().end()


class _Decoder:
    """One process."""

    def __init__(self, side: int | None) -> None:
        own = {
            # Found where this interpreter finds them, and no pool of threads for arithmetic that is not done.
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        command = [sys.executable, "-P", "-W", "ignore", decode.__file__, str(side or 0)]
        posix = os.name == "posix"
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                # A group of its own: Ctrl-C reaches the caller, who then ends the decoders.
                process_group=0 if posix else None, creationflags=0 if posix else 0x200, env={**os.environ, **own},
            )  # fmt: skip
        except OSError as error:
            raise RuntimeError(CANNOT.format(sys.executable, error)) from error

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.read(1) != b"!":
            code = self.end(patience=2)
            raise RuntimeError(CANNOT.format(sys.executable, f"exit code {code}"))

    def read(self, path: Path) -> Bytes | BadImage:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        name = os.fsencode(path)
        stdin.write(len(name).to_bytes(4, "little") + name)
        stdin.flush()
        return received(stdout, str(path))

    def end(self, patience: float = 0) -> int:
        """The process's code, if it ends by itself within ``patience`` seconds; else it is ended."""
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what was not yet sent cannot be
                pipe.close()
        return code


def received(answers: IO[bytes], name: str) -> Bytes | BadImage:
    """The next answer of a process that decodes: pixels, or what is wrong with the image; EOFError if it is gone."""
    header = answers.read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    fine, length, height, width = HEADER.unpack(header)
    content = answers.read(length)
    if len(content) < length:
        raise EOFError
    if not fine:
        return BadImage(name, content.decode("utf-8", "replace"))
    return np.frombuffer(content, np.uint8).reshape(height, width, 3)

"""Images from strangers to pixels, in a process that can do no harm; see `nearkin.serve.upload_process`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

import numpy as np
from numpy.typing import NDArray

from nearkin.data import decode
from nearkin.data.decode import BadImage
from nearkin.data.decoders import received
from nearkin.serve import upload_process
from nearkin.serve.upload_process import REQUEST

MOST_BYTES = 20_000_000
PATIENCE = 15.0
"""Seconds for an image; a process that takes longer is ended."""
NAME = "the image"

Pixels = NDArray[np.uint8]


class Uploads:
    """A process that decodes, started when first needed and again after it died; one image at a time."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, content: bytes, side: int) -> Pixels:
        """The pixels, the shorter side at most ``side``; raises ``BadImage`` for what is no image or a hostile one."""
        if len(content) > MOST_BYTES:
            raise BadImage(NAME, f"it has {len(content):,} bytes, more than {MOST_BYTES:,}")
        with self._lock:
            process = self._started()
            late = threading.Timer(self.patience, process.kill)
            late.start()
            try:
                return self._asked(process, content, side)
            except (OSError, EOFError):
                self._end()
                raise BadImage(NAME, "it takes too much time or memory to decode, or crashes the decoder") from None
            finally:
                late.cancel()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        own = {
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        command = [sys.executable, "-P", "-W", "ignore", upload_process.__file__, decode.__file__]
        posix = os.name == "posix"
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            # A group of its own: Ctrl-C reaches the server, which then ends it.
            process_group=0 if posix else None, creationflags=0 if posix else 0x200, env={**os.environ, **own},
        )  # fmt: skip
        assert self._process.stdout is not None
        if self._process.stdout.read(1) != b"!":
            self._end()
            raise RuntimeError("the process that decodes images must start, got none; see that Pillow is installed.")
        return self._process

    @staticmethod
    def _asked(process: subprocess.Popen[bytes], content: bytes, side: int) -> Pixels:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(REQUEST.pack(len(content), side))
        stdin.write(content)
        stdin.flush()
        found = received(stdout, NAME)
        if isinstance(found, BadImage):
            raise found
        return found

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

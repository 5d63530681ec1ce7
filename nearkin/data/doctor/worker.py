"""A process that looks at images for the doctor. It starts in a fraction of a second, because it never loads torch.

It reads requests from its input and writes answers to its output until the input ends; both are described by
``Message``. A decoder that crashes takes this process with it, and not the doctor.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import types
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearkin.data.doctor.picture import Wanted


class Message:
    """A JSON object and bytes: the length of each in four and eight bytes, then the two."""

    @staticmethod
    def write(stream: IO[bytes], values: dict[str, Any], content: bytes = b"") -> None:
        text = json.dumps(values).encode()  # ASCII, so file names that are no text survive
        stream.write(len(text).to_bytes(4, "little") + len(content).to_bytes(8, "little") + text)
        stream.write(content)
        stream.flush()

    @staticmethod
    def read(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
        """The next message, or None where the stream ends."""
        sizes = stream.read(12)
        if len(sizes) < 12:
            return None
        text, content = int.from_bytes(sizes[:4], "little"), int.from_bytes(sizes[4:], "little")
        both = stream.read(text + content)
        if len(both) < text + content:
            return None
        return json.loads(both[:text]), both[text:]


def serve(requests: IO[bytes], answers: IO[bytes], wanted: Wanted) -> None:
    """Say that it is ready, then answer requests, ``{"path": ...}`` or ``{"shape": ...}`` with pixels, until they end."""
    import numpy as np

    from nearkin.data.doctor.picture import look

    Message.write(answers, {"ready": True})
    while (message := Message.read(requests)) is not None:
        values, content = message
        source = values["path"] if "path" in values else np.frombuffer(content, np.uint8).reshape(values["shape"])
        facts, prints = look(source, wanted)
        answer: dict[str, Any] = {"facts": dataclasses.asdict(facts)}
        parts = []
        if prints is not None:
            answer["hash"], answer["mirror"] = prints.hash, prints.mirror
            parts = [prints.grey, prints.colour, prints.crop, prints.features]
        Message.write(answers, answer, b"".join(np.ascontiguousarray(part).tobytes() for part in parts))


def _skip_package_files(package: str) -> None:
    """Name the packages above this file without running their ``__init__``, which would load torch."""
    folder = package
    names = ["nearkin.data.doctor", "nearkin.data", "nearkin"]
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [folder]
        sys.modules[name] = module
        folder = os.path.dirname(folder)


def _main() -> None:
    settings = json.loads(sys.argv[1])
    sys.path[:] = settings["path"]
    _skip_package_files(os.path.dirname(os.path.abspath(__file__)))
    # An interruption is for the doctor to handle; it closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a library prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from nearkin.data.doctor.picture import Wanted

    serve(sys.stdin.buffer, answers, Wanted(**settings["wanted"]))


if __name__ == "__main__":
    try:
        _main()
    except BrokenPipeError:
        os._exit(1)  # whoever asked is gone

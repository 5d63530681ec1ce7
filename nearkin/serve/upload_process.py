"""A process that decodes images from strangers: little memory, little time, no files, and only common kinds of image.

Run as a program with the path of `nearkin/data/decode.py`, it imports nothing of nearkin. A request is the length of the
image, the shorter side wanted, and the image; an answer is a header of the decoder, then pixels or the reason.
"""

from __future__ import annotations

import importlib.util
import os
import struct
import sys
from typing import Any

MOST_PIXELS = 40_000_000
MEMORY = 1536 << 20
SECONDS = 20
REQUEST = struct.Struct("<QI")
KINDS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "MPO")
"""Others are refused unseen: some, such as EPS, start programs of their own."""


def confine() -> None:
    """Give up what decoding does not need. Seconds are those of the processor, per image: see ``more_time``."""
    if os.name != "posix":
        return
    import resource

    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))


def more_time() -> None:
    if os.name != "posix":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + SECONDS, hard))


def loaded(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("nearkin_decode", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up among the answers
    decode = loaded(sys.argv[1])
    import numpy as np
    import PIL.Image

    PIL.Image.init()
    PIL.Image.ID[:] = [kind for kind in PIL.Image.ID if kind in KINDS]
    confine()
    answers.write(b"!")
    answers.flush()
    requests = sys.stdin.buffer
    while head := requests.read(REQUEST.size):
        length, side = REQUEST.unpack(head)
        content = requests.read(length)
        more_time()
        try:
            pixels = decode.read_image(content, side=side or None, most_pixels=MOST_PIXELS)
        except decode.BadImage as bad:
            reason = bad.reason.encode("utf-8", "replace")
            answers.write(decode.HEADER.pack(False, len(reason), 0, 0) + reason)
        else:
            height, width, _ = pixels.shape
            answers.write(decode.HEADER.pack(True, pixels.nbytes, height, width))
            answers.write(np.ascontiguousarray(pixels).data)
        answers.flush()


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # whoever asked is gone

"""A worker whose training is a stand-in: it notes what it begins, and takes a little time over it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from nearkin.tune import trial, worker
from tests.tune.stubs import stub


def slow(settings: Any) -> float:
    folder = Path(settings.out)
    notes = folder.parent.parent.parent / "begun.txt"
    with notes.open("a") as file:
        file.write(f"{folder.name} {os.getpid()} {sorted(settings.loss_settings.items())}\n")
    patience = notes.with_name("patience.txt")
    time.sleep(float(patience.read_text()) if patience.exists() else 0.02)
    return 0.5


if __name__ == "__main__":
    trial.train = stub(slow)
    code = worker.main()
    sys.stderr.flush()
    os._exit(code)

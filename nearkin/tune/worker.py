"""A process that takes one trial after the other until none is left.

``python -m nearkin.tune.worker`` reads what to do from its input, one line of JSON, and stops in good order, the running
trial saved, when that input is closed: also when the process that began it is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nearkin.train.stop import Stop, ask
from nearkin.tune import files, trial
from nearkin.tune.attempt import best
from nearkin.tune.propose import Pause
from nearkin.tune.settings import plan_of, plans, search_of
from nearkin.tune.show import Show
from nearkin.tune.study import Study

STOPPED = 3


def work(study: Study, show: Show, stopped: Callable[[], bool] = lambda: False) -> None:
    """Take trials until there are no more, or ``stopped`` says so."""
    while not stopped():
        found = study.begin()
        if found is Pause.OVER:
            return
        if isinstance(found, Pause):
            time.sleep(0.2)
            continue
        asked, attempt = found
        try:
            trial.run(study, asked, attempt, show, stopped)
        finally:
            files.write(study)
        tell(study, attempt.loss, attempt.number, show)


def tell(study: Study, loss: str, number: int, show: Show) -> None:
    """Show a trial that has ended."""
    counted = study.counted(loss)
    show.ended(study.attempts(loss)[number], len(counted), best(counted))


def open_study(given: dict[str, Any], images: str, worker: str = "") -> Study:
    """The study that these settings ask for."""
    search = search_of(given)
    return Study(
        Path(search.study),
        plans(given, search),
        trials=search.trials,
        method=search.method,
        pruner=search.pruner,
        search_seed=search.search_seed,
        images=images,
        worker=worker,
        plan_of=lambda loss: plan_of(loss, given, search),
    )


def main() -> int:
    """One worker of several; returns 0 when nothing is left to do, ``STOPPED`` when it was asked to stop."""
    job = json.loads(sys.stdin.readline())
    closed = threading.Event()
    threading.Thread(target=_listen, args=(closed,), daemon=True).start()
    with Stop() as stop:
        try:
            with open_study(job["given"], job["images"], job["worker"]) as study:
                work(study, Show(), lambda: closed.is_set() or stop.asked)
        except KeyboardInterrupt:
            return STOPPED
        except (ValueError, TypeError, ImportError, OSError) as error:
            print(error, file=sys.stderr)
            return 2
    return STOPPED if closed.is_set() or stop.asked else 0


def _listen(closed: threading.Event) -> None:
    """When the input ends, ask the running trial to stop at the end of its step."""
    sys.stdin.read()
    closed.set()
    ask()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # not through the thread that waits for input

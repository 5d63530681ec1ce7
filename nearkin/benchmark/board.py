"""What a person sees of a benchmark: a table that is kept up to date on a terminal, a line for each run elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from nearkin.benchmark.job import Job
from nearkin.benchmark.schedule import Schedule
from nearkin.results import Result
from nearkin.wording import count, feedback

ODD = "odd"
"""The kind of message that tells something about the images of a run."""
STARTING = "starting"
QUIET = 60.0
"""Seconds without a line after which plain lines say how far runs are."""
MOST = 3
"""How many runs such a line names."""
HOLE = "hole"
"""Stands for the mean of a loss of which a run failed: others have a mean of runs that it lacks."""


def name(job: Job) -> str:
    """A run in a few words."""
    settings = job.settings
    fold = f" fold {settings.fold}" if settings.protocol == "cross_validation" else ""
    return (
        f"{job.label} on {job.data}, {settings.network} {settings.dim}, {settings.protocol}{fold}, seed {settings.seed}"
    )


def outcome(result: Result) -> str:
    """What came of a run in a few words."""
    if not result.done:
        return f"failed: {result.error.rstrip('. ')}"
    first = next((name for name in result.metrics if name.startswith("recall@")), "")
    shown = f"{first.replace('recall', 'R')} {100 * result.metrics[first]:.1f}" if first else "done"
    return f"{shown}{feedback(result.protocol)} in {result.cost.get('seconds', 0):.0f} s"


class Board:
    """Plain lines: how much there is to do, what starts, what ends, and now and then how far the rest is."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.jobs = list(jobs)
        self.metric = f"recall@{self.jobs[0].settings.ks[0]}"  # the first that is measured; not every grid has recall@1
        self.begun = time.monotonic()
        self.results: dict[str, Result] = {}
        self.at: dict[str, tuple[Job, str]] = {}
        self.new = 0
        self.failures: dict[str, int] = {}
        self.noted: set[tuple[str, str]] = set()
        self.told: set[str] = set()
        self.said = time.monotonic()

    def say(self, text: str) -> None:
        self.said = time.monotonic()
        print(text, flush=True)

    def known(self, results: dict[str, Result]) -> None:
        """Runs of which it is known before what came of them."""
        self.results |= results

    def begin(self) -> None:
        """Say how much there is to do: the first run may take hours."""
        done = sum(result.done for result in self.results.values())
        failed = len(self.results) - done
        given_up = f", {failed} failed" if failed else ""
        self.say(f"{count(len(self.jobs), 'run')}: {done} done{given_up}, {len(self.jobs) - len(self.results)} to do")

    def started(self, job: Job) -> None:
        """A run was handed out, which another process may be at."""
        self.at[job.id] = (job, STARTING)

    def going(self, job: Job) -> None:
        """A run has been heard of, once for each."""
        self.say(f"started: {name(job)}")

    def heard(self, job: Job, message: dict[str, Any]) -> None:
        if message["kind"] != ODD and job.id not in self.told:
            self.told.add(job.id)
            self.going(job)
        if message["kind"] == "step":
            share = 100 * message["step"] / max(message["steps"], 1)
            self.at[job.id] = (job, f"{share:.0f} %, {message['rate']:,.0f} images/s")
        elif message["kind"] != ODD:
            self.at[job.id] = (job, message["text"])
        elif (note := (job.data, message["text"])) not in self.noted:  # once for all runs on these images
            self.noted.add(note)
            self.say(f"note: {job.data}: {message['text']}")

    def ended(self, job: Job, schedule: Schedule) -> None:
        self.at.pop(job.id, None)
        result = schedule.finished.get(job.id)
        if result is not None:
            if job.id not in self.results:
                self.new += 1
                self.say(f"[{len(self.results) + 1}/{len(self.jobs)}] {name(job)}: {outcome(result)}{self._left()}")
            self.results[job.id] = result
        elif any(order.job.id == job.id and order.failures for order in schedule.waiting):
            failures = job.failures(schedule.out)
            if len(failures) > self.failures.get(job.id, 0):  # else another process is at it
                self.failures[job.id] = len(failures)
                self.say(f"{name(job)} failed and is tried again: {failures[-1].rstrip('. ')}")

    def _left(self) -> str:
        open_runs = len(self.jobs) - len(self.results) - 1
        if open_runs <= 0 or not self.new:
            return ""
        return f"; about {_time((time.monotonic() - self.begun) / self.new * open_runs)} left"

    def show(self) -> None:
        """Bring the table up to date; in plain lines, tell how far runs are when nothing has been said for a while."""
        far = [f"{name(job)}: {text}" for job, text in self.at.values() if text != STARTING]
        if far and time.monotonic() - self.said >= QUIET:
            more = f" and {len(far) - MOST} more" if len(far) > MOST else ""
            self.say(f"{len(self.results)} of {len(self.jobs)} runs; {'; '.join(far[:MOST])}{more}")

    def close(self) -> None:
        """Leave the terminal as it was."""

    def rows(self) -> list[tuple[str, dict[str, int], str]]:
        """For each loss: how many runs stand where, and the mean of what is done."""
        found = []
        for label in dict.fromkeys(job.label for job in self.jobs):
            own = [job for job in self.jobs if job.label == label]
            counts = Counter(self._status(job) for job in own)
            found.append((label, dict(counts), self._mean(own)))
        return found

    def _mean(self, jobs: Iterable[Job]) -> str:
        """The mean of what is done, where it is of one experiment and nothing failed; nothing else may be averaged."""
        known = [self.results[job.id] for job in jobs if job.id in self.results]
        if not all(result.done for result in known):
            return HOLE
        values = [result.metrics[self.metric] for result in known if self.metric in result.metrics]
        if not values or len({result.experiment for result in known}) > 1:
            return ""
        return f"{100 * sum(values) / len(values):.1f}{feedback(known[0].protocol)}"

    def _status(self, job: Job) -> str:
        if job.id in self.results:
            return "done" if self.results[job.id].done else "failed"
        return "running" if job.id in self.at else "left"


class Live(Board):
    """A table with a row for each loss and the runs that are going on."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        super().__init__(jobs)
        from rich.console import Console
        from rich.live import Live as Screen

        self.console = Console()
        self.screen = Screen(console=self.console, refresh_per_second=2, get_renderable=self.picture)
        self.screen.start()

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False)

    def begin(self) -> None:
        """The table has it."""

    def going(self, job: Job) -> None:
        """The table has it."""

    def picture(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for title in ("loss", "done", "running", "failed", "left", self.metric.replace("recall", "R")):
            table.add_column(title, justify="left" if title == "loss" else "right")
        for label, counts, mean in self.rows():
            cells = [str(counts.get(key, "") or "") for key in ("done", "running", "failed", "left")]
            table.add_row(Text(label), *cells, mean, style="red" if counts.get("failed") else None)
        going = [Text(f"  {name(job)}: {text}", overflow="ellipsis", no_wrap=True) for job, text in self.at.values()]
        head = f"{len(self.results)} of {len(self.jobs)} runs, {_time(time.monotonic() - self.begun)}{self._left()}"
        return Group(table, Text(head), *going)

    def show(self) -> None:
        self.screen.refresh()

    def close(self) -> None:
        self.screen.stop()


def board(jobs: Iterable[Job]) -> Board:
    """The best that fits where the output goes."""
    return Live(jobs) if sys.stdout.isatty() else Board(jobs)


def _time(seconds: float) -> str:
    """Seconds as a person says them.

    >>> _time(42), _time(600), _time(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

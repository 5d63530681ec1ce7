"""What a person sees of a study: a line for every trial, bars on a terminal, and the table at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nearkin import calling
from nearkin.tune.attempt import ABANDONED, COUNTED, DONE, FAILED, PRUNED, Attempt, best

REASONS = 10


class Show:
    """Shows nothing; the others say what they show."""

    def begin(self, counted: Mapping[str, int], trials: int) -> None:
        """So many trials of each loss are over already."""

    def steps(self, attempt: Attempt, steps: int, step: int) -> None:
        """A trial begins its steps."""

    def step(self, attempt: Attempt, step: int) -> None:
        """A trial has come to this step."""

    def ended(self, attempt: Attempt, counted: int, found: Attempt | None) -> None:
        """A trial has ended; ``counted`` of its loss are over, ``found`` is the best of them."""

    def say(self, text: str) -> None:
        """A remark."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def values(parameters: Mapping[str, Any]) -> str:
    """Parameters in a few words.

    >>> values({"margin": 0.1, "lr": 0.000123456, "miner": "hard"})
    'margin 0.1, lr 0.0001235, miner hard'
    """
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in parameters.items()
    )


def figure(value: float | None) -> str:
    """A share as a percentage."""
    return "" if value is None else f"{100 * value:.1f}"


def line(attempt: Attempt, counted: int, trials: int, found: Attempt | None) -> str:
    """A trial that has ended, in one line."""
    seconds = f"  {attempt.seconds:.1f} s" if attempt.seconds is not None else ""
    # Trials that are run again, or that ended in another order, make the two differ; tables and folders have the latter.
    which = f", trial {attempt.number + 1}" if attempt.number + 1 != counted else ""
    head = f"{attempt.loss}  {counted} of {trials}{which}  "
    if attempt.status == DONE:
        epoch = "" if attempt.epoch is None else f" in epoch {attempt.epoch + 1}"
        record = "  (best so far)" if found and found.number == attempt.number else ""
        return f"{head}{figure(attempt.value)}{epoch}  {values(attempt.parameters)}{seconds}{record}"
    if attempt.status == PRUNED:
        return f"{head}pruned at {figure(attempt.value)}  {values(attempt.parameters)}{seconds}"
    word = "to be run again" if attempt.status == ABANDONED else attempt.status
    return f"{head}{word}: {attempt.reason}  {values(attempt.parameters)}{seconds}"


class Lines(Show):
    """A line for every trial, for logs and pipes."""

    def __init__(self) -> None:
        self.trials = 0

    def say(self, text: str) -> None:
        print(text, flush=True)

    def begin(self, counted: Mapping[str, int], trials: int) -> None:
        self.trials = trials
        for loss, number in counted.items():
            if 0 < number < trials:
                self.say(f"{loss}: {number} of {trials} trials are there already")

    def ended(self, attempt: Attempt, counted: int, found: Attempt | None) -> None:
        self.say(line(attempt, counted, self.trials, found))


class Bars(Lines):
    """A bar for each loss, with the best figure and the time left, and one for each trial."""

    def __init__(self) -> None:
        super().__init__()
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.bars = Progress(
            TextColumn("{task.description:24s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[note]}"),
        )  # fmt: skip
        self.bars.start()
        self.losses: dict[str, Any] = {}
        self.running: dict[str, Any] = {}

    def say(self, text: str) -> None:
        self.bars.console.print(text, highlight=False, markup=False)

    def begin(self, counted: Mapping[str, int], trials: int) -> None:
        super().begin(counted, trials)
        for loss, number in counted.items():
            self.losses[loss] = self.bars.add_task(loss, total=trials, completed=number, note="")

    def steps(self, attempt: Attempt, steps: int, step: int) -> None:
        self.running[attempt.name] = self.bars.add_task(
            f"  trial {attempt.number + 1}", total=steps, completed=step, note=attempt.loss
        )

    def step(self, attempt: Attempt, step: int) -> None:
        self.bars.update(self.running[attempt.name], completed=step)

    def ended(self, attempt: Attempt, counted: int, found: Attempt | None) -> None:
        super().ended(attempt, counted, found)
        note = f"best {figure(found.value)}" if found else ""
        self.bars.update(self.losses[attempt.loss], completed=counted, note=note)
        if attempt.name in self.running:
            self.bars.remove_task(self.running.pop(attempt.name))

    def close(self) -> None:
        self.bars.stop()


def show() -> Show:
    """The best that fits where the output goes."""
    return Bars() if sys.stdout.isatty() else Lines()


def table(trials: Mapping[str, Sequence[Attempt]], measure: str, wanted: int, classes: int = 0) -> str:
    """The best trial of every loss, best first, what failed and why, and what the figures are."""
    rows = [_row(loss, list(attempts), wanted) for loss, attempts in trials.items()]
    rows.sort(key=lambda row: -row[0])
    cells = [("loss", measure, "trial", "epoch", "trials", "pruned", "failed", "parameters"), *(row[1] for row in rows)]
    wide = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    aligned = [
        "  ".join(
            cell.ljust(wide[place]) if place in (0, len(row) - 1) else cell.rjust(wide[place])
            for place, cell in enumerate(row)
        ).rstrip()
        for row in cells
    ]
    lines = [aligned[0], "  ".join("-" * width for width in wide[:-1]) + "  " + "-" * 10, *aligned[1:]]
    lines += _failures(trials)
    of = f"{classes} of the training classes, kept back to validate" if classes else "validation classes"
    lines += ["", f"{measure} is a validation figure, on {of}; each is the best of many, which flatters."]
    lines.append("The test set was not looked at.")
    return "\n".join(lines)


def _row(loss: str, attempts: list[Attempt], wanted: int) -> tuple[float, tuple[str, ...]]:
    over = [attempt for attempt in attempts if attempt.status in COUNTED]
    counts = {status: sum(attempt.status == status for attempt in over) for status in COUNTED}
    found = best(over)
    done = f"{len(over)}" if len(over) == wanted else f"{len(over)} of {wanted}"
    rest = (done, str(counts[PRUNED]), str(counts[FAILED]))
    if found is None or found.epoch is None:
        return -1.0, (loss, "-", "-", "-", *rest, "no trial came to its end")
    cells = (loss, figure(found.value), str(found.number + 1), str(found.epoch + 1), *rest, values(found.parameters))
    return found.value or 0.0, cells


def _failures(trials: Mapping[str, Sequence[Attempt]]) -> list[str]:
    failed = [attempt for attempts in trials.values() for attempt in attempts if attempt.status == FAILED]
    if not failed:
        return []
    lines = ["", "Failed trials:"]
    lines += [f"  trials/{attempt.name}: {attempt.reason} ({values(attempt.parameters)})" for attempt in failed][
        :REASONS
    ]
    if len(failed) > REASONS:
        lines.append(f"  and {len(failed) - REASONS} more; trials.jsonl has every reason")
    return lines


def closing(folder: Path, losses: Sequence[str], root: str) -> str:
    """How to train with what was found."""
    where = ("--root", root) if root else ()
    return "\n".join(calling.line("train", "--config", folder / "best" / f"{loss}.toml", *where) for loss in losses)

"""What a person sees of a run: progress with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearkin import wording
from nearkin.results import heading, is_share

if TYPE_CHECKING:
    from nearkin.models import Embedder
    from nearkin.train.settings import Train

Tell = Callable[[int, int], None]
Sizes = dict[str, tuple[int, int]]
Bad = tuple[tuple[str, str], ...]


def shares(found: dict[str, Any]) -> dict[str, float]:
    """The measures among other facts of a result, as percentages by their short forms."""
    wanted = [key for key in found if is_share(key)]
    return {heading(key): 100 * found[key] for key in wanted if found[key] is not None}


class Screen:
    """Shows nothing; the others say what they show."""

    def note(self, text: str) -> None:
        """Something about the data set that a person should know."""

    def warn(self, text: str) -> None:
        """Something that makes the result doubtful."""

    @contextmanager
    def job(self, text: str) -> Iterator[Tell]:
        """A piece of work with a name; call what this gives with (done, total)."""
        yield lambda done, total: None

    def begin(self, settings: Train, steps: int, step: int, model: Embedder, sizes: Sizes, bad: Bad) -> None:
        """The run is ready and goes on from ``step``."""

    def step(self, step: int, record: dict[str, Any], size: int) -> None:
        """``record`` is the newest step known."""

    def measured(self, record: dict[str, Any]) -> None:
        """The test set, or the classes kept back, were measured."""

    def end(self, result: dict[str, Any], folder: Path) -> None:
        """The run is done."""

    def close(self) -> None:
        """Leave the terminal as it was."""


Silent = Screen


def summary(settings: Train, steps: int, step: int, model: Embedder, sizes: Sizes, bad: Bad) -> list[str]:
    """What will be done, in a few lines."""
    levels = len(model.levels)
    size = f"{model.dim} dimensions" if levels == 1 else f"{levels} x {model.dim} = {model.total} dimensions"
    weights = settings.weights or "random weights"
    lines = [
        f"{settings.loss} on {settings.data}, recipe {settings.recipe}, seed {settings.seed}",
        f"{settings.network} ({weights}), {size}",
        ", ".join(
            f"{name} {wording.count(images, 'image')} of {wording.count(classes, 'class', 'classes')}"
            for name, (images, classes) in sizes.items()
        )
        + f"; {wording.count(steps, 'step')}",
    ]
    if settings.chooses:
        where = {"test_feedback": "the test set: test_feedback, which flatters"}.get(
            settings.protocol, f"the validation classes ({settings.protocol})"
        )
        lines.append(f"the epoch is chosen on {where}")
    if bad:
        lines.append(unreadable(bad))
    if step:
        lines.append(f"going on from step {step:,}")
    return lines


def unreadable(bad: Bad) -> str:
    """Which images training goes without."""
    shown = "; ".join(f"{name}: {reason}" for name, reason in bad[:3])
    return f"left out {wording.count(len(bad), 'image')} that cannot be read: {shown}{'; ...' if len(bad) > 3 else ''}"


class Lines(Screen):
    """A line now and then, for logs and pipes."""

    def __init__(self, every: float = 10.0) -> None:
        self.warnings: list[str] = []  # to be said again with the result
        self.every, self.last, self.steps = every, 0.0, 0
        self.begun, self.first = time.perf_counter(), 0
        self.parts = {"validate": " (validation)"}

    def say(self, text: str) -> None:
        print(text, flush=True)

    def note(self, text: str) -> None:
        self.say(f"note: {text}")

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        print(f"warning: {text}", file=sys.stderr, flush=True)

    @contextmanager
    def job(self, text: str) -> Iterator[Tell]:
        begun = time.perf_counter()
        yield lambda done, total: None
        if time.perf_counter() - begun > 1:
            self.say(f"{text}: {time.perf_counter() - begun:.1f} s")

    def begin(self, settings: Train, steps: int, step: int, model: Embedder, sizes: Sizes, bad: Bad) -> None:
        for line in summary(settings, steps, step, model, sizes, bad):
            self.say(line)
        self.steps, self.first, self.begun = steps, step, time.perf_counter()
        self.parts["evaluate"] = wording.feedback(settings.protocol)

    def step(self, step: int, record: dict[str, Any], size: int) -> None:
        now = time.perf_counter()
        if now - self.last < self.every:
            return
        self.last = now
        rate = (step - self.first) / max(now - self.begun, 1e-9)
        left = (self.steps - step) / max(rate, 1e-9)
        self.say(
            f"step {step:,} of {self.steps:,}  loss {record['loss']:.4f}  {rate * size:,.0f} images/s  {left:,.0f} s left"
        )

    def measured(self, record: dict[str, Any]) -> None:
        found = "  ".join(f"{name} {value:.1f}" for name, value in shares(record).items())
        self.say(f"epoch {record['epoch'] + 1}{self.parts.get(record['kind'], '')}: {found}")

    def end(self, result: dict[str, Any], folder: Path) -> None:
        self.say(f"{result['seconds']:.1f} s of training, {result['images_per_second']:,.0f} images/s; see {folder}")


class Terminal(Lines):
    """A progress bar with rate and time left."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.console = Console()
        self.bars = Progress(
            TextColumn("{task.description:24s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=self.console,
        )  # fmt: skip
        self.bars.start()
        self.training: Any = None

    def say(self, text: str) -> None:
        self.bars.console.print(text, highlight=False, markup=False)

    @contextmanager
    def job(self, text: str) -> Iterator[Tell]:
        from rich.markup import escape

        task = self.bars.add_task(escape(text), total=None, note="")
        yield lambda done, total: self.bars.update(task, completed=done, total=total)
        self.bars.remove_task(task)

    def begin(self, settings: Train, steps: int, step: int, model: Embedder, sizes: Sizes, bad: Bad) -> None:
        super().begin(settings, steps, step, model, sizes, bad)
        self.training = self.bars.add_task("training", total=steps, completed=step, note="")

    def step(self, step: int, record: dict[str, Any], size: int) -> None:
        rate = (step - self.first) * size / max(time.perf_counter() - self.begun, 1e-9)
        self.bars.update(self.training, completed=step, note=f"{rate:,.0f} images/s  loss {record['loss']:.4f}")

    def end(self, result: dict[str, Any], folder: Path) -> None:
        self.bars.stop()
        super().end(result, folder)

    def close(self) -> None:
        self.bars.stop()


def screen() -> Lines:
    """The best that fits where the output goes."""
    return Terminal() if sys.stdout.isatty() else Lines()


def table(title: str, rows: dict[str, dict[str, float]]) -> str:
    """Rows of percentages as plain text, columns aligned.

    >>> print(table("birds", {"before": {"R@1": 52.2}, "after": {"R@1": 67.7}}))
    birds    R@1
    before  52.2
    after   67.7
    """
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    wide = max(map(len, [title, *rows]))
    lines = [title.ljust(wide) + "".join(name.rjust(max(6, len(name) + 2)) for name in columns)]
    for name, row in rows.items():
        cells = (f"{row[column]:.1f}" if column in row else "" for column in columns)
        lines.append(
            name.ljust(wide) + "".join(c.rjust(max(6, len(n) + 2)) for c, n in zip(cells, columns, strict=True))
        )
    return "\n".join(lines)

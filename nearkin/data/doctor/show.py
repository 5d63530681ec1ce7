"""The findings as text: a table by kind, then what it comes to in a sentence."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from typing import Any

from nearkin.data.doctor.findings import Finding, Findings
from nearkin.data.doctor.kinds import KINDS, Severity
from nearkin.wording import count

HEADING = "finding                  count  severity  nearkin does"
PAIRS = ("leak", "conflict", "duplicate", "near-duplicate")
STYLES = {"serious": "1;31", "warning": "33", "note": "0"}
"""Colours of a terminal: bold red, yellow, its own."""

SECONDS = 5.0
"""Between two lines of progress where nobody watches."""

SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")


def report(found: Findings, examples: int = 2, width: int | None = None, colour: bool = False) -> str:
    """All of it as text, ``width`` columns wide: the terminal's, or 120 where there is none."""
    columns = width or shutil.get_terminal_size((120, 24)).columns
    parts = [table(found, examples, columns, colour), ""] if found.findings else []
    parts += [
        textwrap.fill(sentence, columns) for sentence in (*found.notes, found.features, summary(found)) if sentence
    ]
    return "\n".join(parts) + "\n"


def summary(found: Findings) -> str:
    """What it comes to, in a sentence or two.

    >>> summary(Findings((), (), 12))
    '12 images of 0 classes: nothing found.'
    """
    classes = len({each.name for each in found.classes})
    start = f"{count(found.images, 'image')} of {count(classes, 'class', 'classes')}"
    counts = {severity: len(found.of_severity(severity)) for severity in SEVERITIES}
    words = {"serious": ("serious", "serious"), "warning": ("warning", "warnings"), "note": ("note", "notes")}
    told = [count(number, *words[severity]) for severity, number in counts.items() if number]
    if not told:
        return f"{start}: nothing found."
    listed = ", ".join(told[:-1]) + (" and " if told[:-1] else "") + told[-1]
    if not counts["serious"]:
        return f"{start}: {listed}; nothing serious."
    return f"{start}: {listed}. {advice(found)}"


def advice(found: Findings) -> str:
    """What to do about the serious findings."""
    counts = found.counts()
    steps = []
    if counts.get("unreadable") or counts.get("truncated"):
        steps.append("replace or delete the files that cannot be read")
    if counts.get("leak"):
        steps.append("take the copies out of the training part, or results will look better than they are")
    if counts.get("conflict"):
        steps.append("keep each picture in one class only")
    text = "; ".join(steps)
    return text[:1].upper() + text[1:] + "." if text else ""


def example(found: Findings, finding: Finding) -> str:
    """One finding in a line."""
    place = finding.place
    part = f"{place.part}: " if place.part else ""
    text = f"{part}{found.short_name(place)}"
    if finding.kind in PAIRS and finding.other is not None:
        other = finding.other
        text += f" = {other.part + ': ' if other.part else ''}{found.short_name(other)}"
    sure = "" if finding.confidence is None else f" ({100 * finding.confidence:.0f}% sure)"
    if finding.kind == "alike-names":
        return finding.detail
    return f"{text}: {finding.detail}{sure}" if finding.detail else text


def table(found: Findings, examples: int, width: int, colour: bool = False) -> str:
    """A line for each kind, and below it examples, which need the whole width: they are paths.

    >>> from nearkin.data.doctor.findings import Place
    >>> print(table(Findings.of([Finding("tiny", Place("cat/1.png", "cat", 0), "20 x 12 pixels")], [], 1), 1, 80))
    finding                  count  severity  nearkin does
    ------------------------------------------------------
    tiny                         1  warning   enlarged
        cat/1.png: 20 x 12 pixels
    """
    lines = [HEADING, "-" * len(HEADING)]
    for kind, group in found.by_kind().items():
        about = KINDS[kind]
        line = f"{about.title:22s}  {len(group):6,}  {about.severity:8s}  {about.action}"
        lines.append(f"\033[{STYLES[about.severity]}m{line}\033[0m" if colour else line)
        for finding in group[:examples]:
            lines += _wrapped(example(found, finding), width)
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=" " * 4, subsequent_indent=" " * 6, break_on_hyphens=False)


class Watching:
    """Shows how far the examination is, on standard error: a bar where a person watches, else a line now and then."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._bars: Any = None
        self._task: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Watching:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bars = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("left"),
                TimeRemainingColumn(), console=Console(file=self._stream), transient=True,
            )  # fmt: skip
            self._bars.start()
            self._task = self._bars.add_task("looking at images", total=None)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, done: int, total: int) -> None:
        if self._bars is not None:
            what = "comparing them" if done == total else "looking at images"
            self._bars.update(self._task, completed=done, total=total, description=what)
        elif time.monotonic() - self._last >= SECONDS:
            self._last = time.monotonic()
            print(f"{done:,} of {total:,} images", file=self._stream, flush=True)

"""The findings as text: a table by kind, then what it comes to in a sentence."""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from nearkin.data.doctor.findings import Finding, Findings
from nearkin.data.doctor.kinds import KINDS, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADINGS = ("finding", "count", "severity", "nearkin does", "for example")
PAIRS = ("leak", "conflict", "duplicate", "near-duplicate")
STYLES = {"serious": "bold red", "warning": "yellow", "note": ""}
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")


def report(found: Findings, examples: int = 2, width: int | None = None, colour: bool = False) -> str:
    """All of it as text, ``width`` columns wide: the terminal's, or 120 where there is none."""
    columns = width or shutil.get_terminal_size((120, 24)).columns
    parts = [table(found, examples, columns, colour)] if found.findings else []
    parts += [
        textwrap.fill(sentence, columns) for sentence in (*found.notes, found.features, summary(found)) if sentence
    ]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def summary(found: Findings) -> str:
    """What it comes to, in a sentence or two.

    >>> summary(Findings((), (), 12))
    '12 images of 0 classes: nothing found.'
    """
    classes = len({each.name for each in found.classes})
    start = f"{_count(found.images, 'image')} of {_count(classes, 'class', 'classes')}"
    counts = {severity: len(found.of_severity(severity)) for severity in SEVERITIES}
    said = [
        f"{counts['serious']:,} serious" * bool(counts["serious"]),
        _count(counts["warning"], "warning") * bool(counts["warning"]),
        _count(counts["note"], "note") * bool(counts["note"]),
    ]
    told = [part for part in said if part]
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
    """The table by rich where it is installed, else in plain columns."""
    rows = []
    for kind, group in found.by_kind().items():
        about = KINDS[kind]
        shown = "\n".join(example(found, finding) for finding in group[:examples])
        rows.append((about.title, f"{len(group):,}", about.severity, about.action, shown))
    try:
        return _rich(rows, width, colour)
    except ImportError:
        return _plain(rows, width)


def _rich(rows: Sequence[tuple[str, ...]], width: int, colour: bool) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(show_lines=False, pad_edge=False, expand=False)
    for place, heading in enumerate(HEADINGS):
        # Examples are folded wherever a line ends: a path has no spaces to break at.
        made.add_column(heading, justify="right" if heading == "count" else "left", no_wrap=place < 3, overflow="fold")
    for row in rows:
        style = STYLES[row[2]]
        made.add_row(*(Text(cell, style=style if place < 3 else "") for place, cell in enumerate(row)))
    screen = io.StringIO()
    Console(file=screen, width=width, force_terminal=colour, no_color=not colour, highlight=False).print(made)
    return screen.getvalue()


def _plain(rows: Sequence[tuple[str, ...]], width: int) -> str:
    """Columns with two spaces between them; what does not fit goes on in the next line of its column."""
    sizes = [
        max(len(line) for cell in column for line in cell.split("\n")) for column in zip(HEADINGS, *rows, strict=True)
    ]
    sizes[3] = min(sizes[3], 20)
    sizes[4] = max(20, width - sum(sizes[:4]) - 8)
    lines = []
    for row in (HEADINGS, *rows):
        cells = [
            [piece for line in cell.split("\n") for piece in textwrap.wrap(line, size) or [""]]
            for cell, size in zip(row, sizes, strict=True)
        ]
        for number in range(max(map(len, cells))):
            pieces = [cell[number] if number < len(cell) else "" for cell in cells]
            aligned = [
                piece.rjust(size) if place == 1 else piece.ljust(size)
                for place, (piece, size) in enumerate(zip(pieces, sizes, strict=True))
            ]
            lines.append("  ".join(aligned).rstrip())
        if row is HEADINGS:
            lines.append("  ".join("-" * size for size in sizes))
    return "\n".join(lines) + "\n"


def _count(number: int, word: str, several: str = "") -> str:
    return f"{number:,} {word if number == 1 else several or word + 's'}"


class Watching:
    """Shows how far the examination is, on standard error: a bar where a person watches, else nothing."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._bars: Any = None
        self._task: Any = None

    def __enter__(self) -> Watching:
        if self._stream.isatty():
            try:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
            except ImportError:
                return self
            self._bars = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("left"),
                TimeRemainingColumn(), console=Console(file=self._stream), transient=True,
            )  # fmt: skip
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, done: int, total: int) -> None:
        if self._bars is None:
            return
        if self._task is None:
            self._task = self._bars.add_task("looking at images", total=total)
        self._bars.update(self._task, completed=done, total=total)
        if done == total:
            self._bars.update(self._task, description="comparing them")

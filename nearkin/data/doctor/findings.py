"""What the doctor found: plain data that can be printed, written as JSON and read back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nearkin import checks
from nearkin.checkpoint import replace
from nearkin.data.doctor.kinds import KINDS, Severity

FORMAT = 1
"""The version of the JSON file; a reader refuses others."""


@dataclass(frozen=True)
class Place:
    """An image, or a class where ``row`` is None. ``row`` counts in the table of ``part`` ("train", "test" or "")."""

    name: str
    class_name: str
    row: int | None = None
    part: str = ""


@dataclass(frozen=True)
class Finding:
    """One problem: its kind (a key of KINDS), where it is, and a few words about it.

    ``other`` is the second image of a pair. ``confidence`` is how sure a guess is, from 0 to 1; None: no guess.

    >>> Finding("tiny", Place("cat/1.png", "cat", 0), "20 x 12 pixels").severity
    'warning'
    """

    kind: str
    place: Place
    detail: str = ""
    other: Place | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(checks.unknown("kind of finding", self.kind, KINDS))

    @property
    def severity(self) -> Severity:
        return KINDS[self.kind].severity


@dataclass(frozen=True)
class ClassCount:
    """How many images a class has, and how many of them can be read."""

    name: str
    images: int
    readable: int
    part: str = ""


@dataclass(frozen=True)
class Findings:
    """Everything that was found, worst kind first.

    - ``images``, ``classes``: what was examined; ``features``: what told classes apart, and how well;
    - ``notes``: sentences about the whole, such as files that belong to no class;
    - ``root``: the folder that all files lie in, "" for pictures in memory.
    """

    findings: tuple[Finding, ...]
    classes: tuple[ClassCount, ...]
    images: int
    features: str = ""
    notes: tuple[str, ...] = ()
    root: str = ""

    @classmethod
    def of(cls, findings: Iterable[Finding], classes: Iterable[ClassCount], images: int, **others: Any) -> Findings:
        """Findings in order: by kind, then by confidence, most sure first, then as they came."""
        order = {kind: place for place, kind in enumerate(KINDS)}
        ranked = sorted(findings, key=lambda finding: (order[finding.kind], -(finding.confidence or 0.0)))
        return cls(tuple(ranked), tuple(classes), images, **others)

    def __len__(self) -> int:
        return len(self.findings)

    def by_kind(self) -> dict[str, tuple[Finding, ...]]:
        """The kinds that occur, worst first, with their findings."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.kind, []).append(finding)
        return {kind: tuple(groups[kind]) for kind in KINDS if kind in groups}

    def counts(self) -> dict[str, int]:
        """How often each kind occurs."""
        return {kind: len(group) for kind, group in self.by_kind().items()}

    def of_severity(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def short_name(self, place: Place) -> str:
        """The name of a place, below the common folder where there is one."""
        inside = self.root and place.row is not None and place.name.startswith(self.root + os.sep)
        return place.name[len(self.root) + 1 :] if inside else place.name

    def json(self) -> str:
        """As text; ``read_json`` reads it back."""
        listed = [asdict(finding) | {"severity": finding.severity} for finding in self.findings]
        values = asdict(self) | {"findings": listed, "counts": self.counts(), "format": FORMAT}
        return json.dumps(values, indent=1, ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON file, whole or not at all."""
        replace(Path(path), self.json().encode("utf-8", "replace"))


def read_json(text: str) -> Findings:
    """The findings that ``Findings.json`` wrote.

    >>> found = Findings.of([Finding("tiny", Place("a.png", "cat", 0))], [ClassCount("cat", 1, 1)], 1)
    >>> read_json(found.json()) == found
    True
    """
    try:
        values = json.loads(text)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise KeyError("format")
        return Findings(
            findings=tuple(_finding(item) for item in values["findings"]),
            classes=tuple(ClassCount(**item) for item in values["classes"]),
            images=values["images"],
            features=values["features"],
            notes=tuple(values["notes"]),
            root=values["root"],
        )
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(
            f"text must be findings of format {FORMAT} as nearkin data check --json writes them, got "
            f"{text[:40]!r} ({error}); write the file again."
        ) from error


def _finding(item: Mapping[str, Any]) -> Finding:
    other = item["other"]
    return Finding(
        item["kind"],
        Place(**item["place"]),
        item["detail"],
        None if other is None else Place(**other),
        item["confidence"],
    )

"""One way to measure: warm up, take turns, report the median and the spread, say on what and at which commit."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
UNKNOWN = "unknown"
"""The commit where nothing says which it is."""
ENDED = 3
"""The exit code of a script that came to its end though some of what it measures failed; 1 is what Python ends with where it
was not prepared for an error."""


def interleaved(functions: dict[str, Callable[[], Any]], repeats: int, seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of each function: turns are taken in rounds, so that a busy moment hits all of them alike.

    At most ``repeats`` rounds, no new round after ``seconds``.
    """
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    begin = time.perf_counter()
    while len(next(iter(times.values()))) < repeats:
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append((time.perf_counter() - start) * 1e3)
        if time.perf_counter() - begin > seconds:
            break
    return {
        name: {"median": statistics.median(found), "low": min(found), "high": max(found), "rounds": len(found)}
        for name, found in times.items()
    }


def peak_memory(function: Callable[[], Any]) -> int:
    """Bytes by which a call raises the peak of resident memory of this process above what it holds before."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    function()
    return max(0, _status("VmHWM") - before)


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{key} is not in /proc/self/status; peak memory needs Linux.")


def conditions() -> dict[str, Any]:
    """Machine, versions, commit and command of a measurement."""
    import torch

    packages = ("torch", "numpy", "pytorch-metric-learning")
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else _processor()
    return {
        "device": device,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in packages},
        "commit": commit(),
        "command": "python " + " ".join([os.path.relpath(sys.argv[0], ROOT), *map(_named, sys.argv[1:])]),
        "date": time.strftime("%Y-%m-%d"),
    }


def _named(argument: str) -> str:
    """An argument of the command; of a file its name, not where it lay."""
    return os.path.basename(argument) if os.path.isabs(argument) else argument


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        pass
    try:  # a folder on the path rather than an installed package
        return str(importlib.import_module(name.replace("-", "_")).__version__)
    except (ImportError, AttributeError):
        return "not installed"


def commit() -> str:
    """The commit that was measured, with a star where files differed from it; COMMIT names it where there is no git."""
    if os.environ.get("COMMIT"):
        return os.environ["COMMIT"]
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        dirty = subprocess.run(
            ["git", "status", "--porcelain", "--", "nearkin", "benchmarks/*.py"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return head.stdout.strip() + ("*" if dirty.stdout.strip() else "")


def exactly(commit: str) -> bool:
    """Whether a commit says which code was measured, so that it need not be measured again."""
    return commit != UNKNOWN and not commit.endswith("*")


def at_hand(found: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether something was measured on the code and the device of now."""
    return exactly(now["commit"]) and all(found.get(key) == now[key] for key in ("commit", "device"))


def rows_at_hand(part: dict[str, Any] | None, now: dict[str, Any], keys: tuple[str, ...]) -> dict[Row, dict[str, Any]]:
    """The rows of a part of a result that need not be measured again, by these keys."""
    found = {}
    for row in part["rows"] if part else []:
        assert part is not None
        if at_hand(row.get("conditions", part["conditions"]), now):
            found[place(row, keys)] = {key: value for key, value in row.items() if key != "conditions"}
    return found


def place(row: dict[str, Any], keys: tuple[str, ...]) -> Row:
    return tuple(row.get(key) for key in keys)


def end(failed: list[str], measured: object) -> None:
    """End a script: where some of it failed with ``ENDED``, where nothing was ``measured`` as with any other error, since
    then the fault is hardly in what failed."""
    if failed:
        print(f"not finished: {', '.join(failed)}")
        sys.exit(ENDED if measured else 1)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    return platform.processor()


def write(name: str, content: dict[str, Any]) -> Path:
    """Save a result under benchmarks/results, whole or not at all: whoever writes may be stopped at any time."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / name
    part = path.with_name(f"{name}.part")
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(path)
    return path


def merged(before: dict[str, Any] | None, now: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """A part of a result with rows that were measured anew, known by these keys, in their places, and the others as they
    were; those keep the conditions that they were measured under where these are not those of now."""
    anew = {place(row, keys): row for row in now["rows"]}
    rows = []
    for row in before["rows"] if before else []:
        assert before is not None
        old = {"conditions": before["conditions"]} | row
        if old["conditions"] == now["conditions"]:
            del old["conditions"]
        rows.append(anew.pop(place(row, keys), old))
    return {**now, "rows": [*rows, *anew.values()]}


def fill(page: Path, mark: str, text: str) -> None:
    """Replace what stands between the markers ``<!-- mark -->`` and ``<!-- /mark -->`` of a page; in lines of its own if the
    first marker begins a line, else within the line: a line that begins with a marker would not be read as text."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    old = page.read_text()
    head, rest = old.split(begin)
    _, tail = rest.split(end)
    gap = "\n" if not head or head.endswith("\n") else ""
    page.write_text(f"{head}{begin}{gap}{text.strip()}{gap}{end}{tail}")

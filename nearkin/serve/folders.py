"""The folders that `nearkin train` wrote and `--run` names: measures with intervals, settings that differ, curves."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from nearkin import results as files
from nearkin.records import measured, records
from nearkin.report.palette import style
from nearkin.results import Result, heading
from nearkin.serve.bounds import NOTHING, Bounds
from nearkin.train.folder import RunFolder
from nearkin.train.settings import Train
from nearkin.wording import feedback

WATCHED = ("config.toml", "log.jsonl", "audit.jsonl", "metrics.json", files.QUERIES)
ALIVE = 300.0
"""Seconds without a new line after which a run that is not finished is no longer said to be going on."""
KINDS = {
    "validate": "validation classes",
    "evaluate": "test classes",
    "feedback": "test classes (test_feedback)",
    "audit": "test classes, opened after the choice",
}
SAME_FOR_THE_EYE = ("out", "packs", "root", "device", "threads", "workers", "tensorboard", "checkpoint_every",
                    "keep_embeddings")  # fmt: skip
"""Settings about where a run lies and computes, not about what it is."""


def check(given: str | Path) -> Path:
    """The folder of a run; raises one sentence where it is none."""
    path = Path(given)
    wrong = ""
    if not path.exists():
        wrong = "which is not there"
    elif not path.is_dir():
        wrong = "which is a file"
    elif not (path / "config.toml").is_file():
        raise ValueError(
            f"serve: run must be a folder that nearkin train wrote, got {str(given)!r}, which has no config.toml; "
            f"make one with nearkin train --out FOLDER."
        )
    if wrong:
        raise ValueError(
            f"serve: run must be a folder that nearkin train wrote, got {str(given)!r}, {wrong}; check the path."
        )
    try:
        RunFolder(path).settings()
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"serve: run must be a folder that nearkin train wrote, got {str(given)!r}, whose settings cannot be read: "
            f"{str(error).rstrip('.')}."
        ) from None
    return path


def names(paths: Sequence[Path]) -> list[str]:
    """A short name of each folder: its own, with as many folders above as it takes to tell them apart.

    >>> names([Path("runs/a/0"), Path("runs/b/0"), Path("runs/c")])
    ['a/0', 'b/0', 'c']
    """
    parts = [path.resolve().parts for path in paths]
    found = []
    for own in parts:
        length = 1
        while length < len(own) and sum(other[-length:] == own[-length:] for other in set(parts)) > 1:
            length += 1
        found.append("/".join(own[-length:]))
    return found


class Folders:
    """The runs that were given, read again when their files have changed."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        checked = [check(path) for path in paths]
        self.paths = dict(zip(names(checked), (path.resolve() for path in checked), strict=True))
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._bounds = Bounds()

    def result(self, name: str) -> Result:
        """A run as a result, whose folder is the run itself; measures are empty while it is not finished."""
        path = self.paths[name]
        return RunFolder(path).result(name, _metrics(path))

    def facts(self) -> dict[str, Any]:
        """What the page shows of all runs."""
        looks = [style(place) for place in range(len(self.paths))]
        runs = [
            {**self._facts(name), "colour": look.colour, "dashed": look.dashed}
            for name, look in zip(self.paths, looks, strict=True)
        ]
        return {
            "runs": [{key: value for key, value in run.items() if key not in ("settings", "curves")} for run in runs],
            "settings": differing({run["name"]: run["settings"] for run in runs}),
            "curves": together(runs),
            "open": any(run["state"] == "open" for run in runs),
            "pending": sum(run["pending"] for run in runs),
        }

    def _facts(self, name: str) -> dict[str, Any]:
        path = self.paths[name]
        stamp = tuple(_stamp(path / file) for file in WATCHED)
        with self._lock:
            if name not in self._known or self._known[name][0] != stamp:
                self._known[name] = stamp, self._read(name, path)
            found = self._known[name][1]
        bounds = self._bounds.of(self.result(name), stamp) if found["on"] == "test" and found["done"] else NOTHING
        low_high, why = bounds or NOTHING
        measures = [{**measure, **_between(low_high.get(measure["key"]))} for measure in found["measures"]]
        more = {"measures": measures, "why": found["why"] or why, "pending": bounds is None}
        return {**found, **state(path, found), **more}

    def _read(self, name: str, path: Path) -> dict[str, Any]:
        try:
            settings, metrics = RunFolder(path).settings(), _metrics(path)
        except (ValueError, TypeError, OSError) as error:  # it was a run when the server began
            empty: dict[str, Any] = {"measures": [], "curves": {}, "settings": {}, "epochs": 0, "on": "", "done": False}
            return {"key": f"run/{name}", "name": name, "why": str(error), "epoch": None, "asked": False, **empty}
        measures = _measures(metrics)
        log = records(path / "log.jsonl", steps=False)
        looked = "feedback" if settings.protocol == "test_feedback" else "evaluate"
        first = f"recall@{settings.ks[0]}"
        curves = {"validate": _points(log, "validate", first), looked: _points(log, "evaluate", first)}
        if metrics:  # before the epoch is chosen, nobody looks at what the test set would say
            curves["audit"] = _points(records(path / "audit.jsonl"), "audit", first)
        curves["loss"] = _points(log, "epoch", "loss")
        last = _last(log)
        return {
            "key": f"run/{name}",
            "name": name,
            "measures": measures or last.get("measures", []),
            "on": "test" if measures else last.get("on", ""),
            "done": bool(metrics),
            "epoch": metrics["epoch"] + 1 if isinstance(metrics.get("epoch"), int) else None,
            "epochs": settings.epochs if not settings.iterations else 0,
            "asked": (path / files.QUERIES).is_file(),
            "why": "",
            "settings": _plain(settings),
            "curves": {kind: points for kind, points in curves.items() if points},
            "metric": heading(first),
        }


def state(path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Whether a run is done, going on or stopped, in words."""
    protocol = facts["settings"].get("protocol", "")
    if (path / "metrics.json").is_file():
        chosen = f"done, epoch {facts['epoch']}" if facts["epoch"] else "done"
        of = f" of {facts['epochs']}" if facts["epochs"] and facts["epoch"] else ""
        by = f" by {protocol}" if protocol == "test_feedback" else ""
        return {"state": "done", "said": f"{chosen}{of}{by}"}
    newest = _stamp(path / "log.jsonl")[0] or _stamp(path / "config.toml")[0]
    seconds = time.time() - newest / 1e9
    reached = max((point[0] for point in facts["curves"].get("loss", [])), default=0)
    of = f" of {facts['epochs']}" if facts["epochs"] else ""
    far = f"epoch {reached}{of} done" if reached else "in its first epoch"
    if seconds <= ALIVE:
        return {"state": "open", "said": f"going on{feedback(protocol)}, {far}"}
    return {"state": "stopped", "said": f"not finished{feedback(protocol)}, {far}, silent for {_ago(seconds)}"}


def differing(settings: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The settings in which the runs differ, each with the value of every run in words.

    >>> differing({"a": {"lr": 0.1, "batch": 60}, "b": {"lr": 0.2, "batch": 60}})
    [{'name': 'lr', 'values': {'a': '0.1', 'b': '0.2'}}]
    """
    every = list(dict.fromkeys(key for plain in settings.values() for key in plain))
    found = []
    for key in every:
        values = {name: _words(plain.get(key)) for name, plain in settings.items()}
        if len(set(values.values())) > 1:
            found.append({"name": key, "values": values})
    return found


def together(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The curves of all runs, by what was measured."""
    found = []
    for kind, words in {**KINDS, "loss": "training"}.items():
        lines = [
            {"label": run["name"], "colour": run["colour"], "dashed": run["dashed"], "points": run["curves"][kind]}
            for run in runs
            if kind in run["curves"]
        ]
        if lines:
            metric = "loss" if kind == "loss" else next(run["metric"] for run in runs if kind in run["curves"])
            found.append({"on": words, "metric": metric, "share": kind != "loss", "lines": lines})
    return found


def _measures(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The measures among other facts, in the order in which they come."""
    wanted = [name for name in found if files.is_share(name)]
    shown = [{"key": name, "name": heading(name), "value": _number(found[name])} for name in wanted]
    return [measure for measure in shown if measure["value"] is not None]


def _between(bounds: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = bounds or (None, None)
    return {"low": low, "high": high}


def _last(log: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The newest measures in the log of a run that is not finished."""
    for record in reversed(log):
        if record.get("kind") in ("validate", "evaluate"):
            on = {"validate": "validation", "evaluate": "test"}[record["kind"]]
            return {"on": on, "measures": _measures(record)}
    return {}


def _points(log: Sequence[dict[str, Any]], kind: str, name: str) -> list[list[float]]:
    found = []
    for record in measured(log, kind):
        value = _number(record.get(name))
        if value is not None and isinstance(record.get("epoch"), int):
            found.append([record["epoch"] + 1, value])
    return found


def _metrics(path: Path) -> dict[str, Any]:
    """The measures of a finished run; empty while there are none or they cannot be read."""
    try:
        return RunFolder(path).metrics()
    except (ValueError, OSError):
        return {}


def _plain(settings: Train) -> dict[str, Any]:
    """Settings by name, tables taken apart: ``loss_settings.alpha``."""
    found: dict[str, Any] = {}
    plain = asdict(settings)
    for entry in fields(Train):
        if entry.name in SAME_FOR_THE_EYE:
            continue
        value = plain[entry.name]
        if isinstance(value, dict):
            found.update({f"{entry.name}.{key}": inner for key, inner in value.items()})
        else:
            found[entry.name] = value
    return found


def _words(value: Any) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(float(value), 6)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def _ago(seconds: float) -> str:
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {word}{'s' if count > 1 else ''}"
    return "less than a minute"

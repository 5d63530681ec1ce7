"""One run of a benchmark, known by the hash of its settings."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nearkin import checkpoint, config
from nearkin.records import records
from nearkin.results import DONE, FAILED, Result, is_share
from nearkin.train.settings import Train

FILE = "job.json"
FAILURES = "failures.jsonl"
WHERE = "where.json"
METRICS = "metrics.json"
REWRITTEN = "go on with nearkin bench and the grid of the run, which writes it again, or remove the folder of the run"


@dataclass(frozen=True)
class Job:
    """What to train and how to call it: ``label`` of the loss, ``data`` of the data set in tables.

    ``origin`` tells apart what the settings name alike: the folder of somebody's own images, the content of weights.
    ``known``: the id under which the run lies in its folder already.
    """

    label: str
    data: str
    settings: Train
    origin: Mapping[str, str] = field(default_factory=dict)
    known: str = field(default="", compare=False)

    @functools.cached_property
    def id(self) -> str:
        """Runs with equal ids have equal settings on equal data, and begin with equal weights wherever their file lies.

        ``data`` is in it, the name a person gave: it tells two copies of one published set apart, whose folders may move.
        """
        return self.known or digest(self.data, self.resolved())

    def resolved(self) -> dict[str, Any]:
        """What the settings come to: the same however a loss was written, and whichever recipe filled them."""
        from nearkin import losses

        name, filled = losses.resolved(self.settings.loss, self.settings.loss_settings)
        found = {**self.settings.identity(), "loss": name, "loss_settings": filled, **self.origin}
        del found["recipe"]
        return found

    @property
    def place(self) -> dict[str, Any]:
        """What the results say of this run, also before it has begun."""
        settings = self.settings
        return {
            "id": self.id,
            "loss": settings.loss,
            "label": self.label,
            "data": self.data,
            "network": settings.network,
            "dim": settings.dim,
            "protocol": settings.protocol,
            "fold": settings.fold if settings.protocol == "cross_validation" else 0,
            "seed": settings.seed,
        }

    def folder(self, out: Path) -> Path:
        return out / "runs" / self.id

    def placed(self, out: Path) -> Train:
        """The settings with the folder of the run."""
        return replace(self.settings, out=str(self.folder(out)))

    def save(self, out: Path) -> None:
        """Leave in the run's folder what the results are made from, so that they can be made again."""
        folder = self.folder(out)
        folder.mkdir(parents=True, exist_ok=True)
        facts = {"label": self.label, "data": self.data, "settings": config.dump(self.settings), "origin": self.origin}
        checkpoint.replace(folder / FILE, json.dumps(facts, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Job:
        """The job that a run's folder belongs to."""
        facts = _read(folder / FILE, REWRITTEN, "label", "data", "settings")
        try:
            settings = Train(**config.parse(facts["settings"], Train, "settings"))
        except (ValueError, TypeError) as error:
            raise _damaged(folder / FILE, str(error).rstrip("."), REWRITTEN) from None
        return cls(facts["label"], facts["data"], settings, facts.get("origin", {}), folder.name)

    # ------------------------------------------------------------------------------------------ what came out

    def finished(self, out: Path) -> bool:
        return (self.folder(out) / METRICS).exists()

    def measures(self, out: Path) -> dict[str, Any]:
        """What a finished run wrote in the end."""
        remedy = "remove it, and the next nearkin bench does the run again"
        return _read(self.folder(out) / METRICS, remedy, "validation", "test_feedback", "epoch")

    def failures(self, out: Path) -> list[str]:
        """Why earlier attempts ended, oldest first."""
        return [str(record["error"]) for record in records(self.folder(out) / FAILURES) if "error" in record]

    def note_failure(self, out: Path, error: str) -> None:
        with (self.folder(out) / FAILURES).open("a") as file:
            file.write(json.dumps({"error": error}) + "\n")

    def note_where(self, out: Path, where: dict[str, Any]) -> None:
        """Leave in the run's folder on what it is done."""
        checkpoint.replace(self.folder(out) / WHERE, json.dumps(where, indent=1).encode())

    def result(self, out: Path) -> Result:
        """The line of this run in the results: its measures, or why there are none."""
        settings, folder = self.settings, self.folder(out)
        common: dict[str, Any] = {
            **self.place,
            "folder": f"runs/{self.id}",
            "settings": json.loads(json.dumps(settings.identity())),
            "where": _read(folder / WHERE, "remove it") if (folder / WHERE).exists() else {},
        }
        if not self.finished(out):
            return Result(**common, status=FAILED, error=(self.failures(out) or ["it was not run"])[-1])
        found = self.measures(out)
        kept: tuple[str, ...] = ("seconds", "images_per_second", "peak_bytes")
        cost = {name: found[name] for name in kept if name in found}
        return Result(
            **common,
            status=DONE,
            metrics=_shares(found),
            validation=found["validation"],
            test_feedback=found["test_feedback"],
            untrained=_shares(found["untrained"]) if found.get("untrained") else None,
            left_out=len(found.get("left_out_images", ())),
            cost={**cost, **({} if settings.iterations else {"epochs": settings.epochs}), "epoch": found["epoch"]},
        )


def _shares(found: Mapping[str, Any]) -> dict[str, float]:
    """The measures among other facts."""
    return {name: value for name, value in found.items() if is_share(name)}


def digest(data: str, settings: Mapping[str, Any]) -> str:
    """The id of a run with these settings on the data set of that name."""
    return hashlib.sha256(json.dumps([data, settings], sort_keys=True).encode()).hexdigest()[:12]


def _read(path: Path, remedy: str, *needed: str) -> dict[str, Any]:
    """The facts in a file of a run."""
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, str(error), remedy) from None
    if not isinstance(found, dict):
        raise _damaged(path, f"a {type(found).__name__}", remedy)
    missing = [name for name in needed if name not in found]
    if missing:
        raise _damaged(path, f"no {missing[0]!r}", remedy)
    return found


def _damaged(path: Path, what: str, remedy: str) -> ValueError:
    return ValueError(f"{path} must be as it was written, got a damaged file ({what}); {remedy}.")

"""The folder of a run: config.toml, log.jsonl, checkpoint/, metrics.json."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearkin import calling, checkpoint, config, results
from nearkin.records import records
from nearkin.results import Result
from nearkin.train.settings import Train

BESIDE = ("job.json", "where.json", "failures.jsonl")
"""What a benchmark writes into the folder of a run before it begins."""


class RunFolder:
    """Reads and writes what a run leaves. Only the first process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log_path = path / "log.jsonl"
        self.checkpoints = path / "checkpoint"

    def check_new(self, packs: str = "") -> None:
        """Raise if the folder holds a run already, or anything else but decoded images: it is left alone."""
        if (self.path / "config.toml").exists():
            raise ValueError(
                f"out must be a new folder, got {str(self.path)!r}, which holds a run; go on with it by "
                f"{calling.line('train', '--resume', self.path)}, or choose another."
            )
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"out must be a folder, got {str(self.path)!r}, which is a file; choose another.")
        strange = self._strangers(Path(packs).resolve() if packs else None)
        if strange:
            raise ValueError(
                f"out must be a new or empty folder, got {str(self.path)!r}, which holds {strange[0]!r} and is no run; "
                f"choose another."
            )

    def _strangers(self, packs: Path | None) -> list[str]:
        """Names in the folder of what no run leaves before it begins."""
        found = sorted(self.path.iterdir()) if self.path.exists() else []
        if self.log_path in found and not self.log_path.stat().st_size:  # of a run that could not begin
            found.remove(self.log_path)
        apart = {packs, *packs.parents} if packs else set()
        return [
            path.name
            for path in found
            if path.name not in BESIDE and not path.name.startswith(".") and path.resolve() not in apart
        ]

    def begin(self, settings: Train) -> None:
        """Make the folder of a new run."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.log_path.write_bytes(b"")
            checkpoint.replace(self.path / "config.toml", config.dump(settings).encode())
        except OSError as error:
            raise ValueError(
                f"out must be a folder that can be written, got {str(self.path)!r} ({error.strerror}); choose another."
            ) from None

    def settings(self) -> Train:
        """The settings of the run that is here."""
        if not (self.path / "config.toml").exists():
            raise ValueError(f"run must be a folder with a config.toml, got {str(self.path)!r}; check the path.")
        return Train(**config.read(self.path / "config.toml", Train))

    def result(self, name: str, metrics: Mapping[str, Any]) -> Result:
        """The run as a result of that name, whose folder is the run itself; without measures it is not finished."""
        settings = self.settings()
        measured = {key: value for key, value in metrics.items() if isinstance(value, float)}
        return Result(
            name, results.DONE if metrics else results.FAILED, settings.loss, name, settings.data, settings.network,
            settings.dim, settings.protocol, settings.fold, settings.seed, measured, folder=str(self.path),
        )  # fmt: skip

    def log(self, *records: dict[str, Any]) -> None:
        """Add lines to the log."""
        if records:
            with self.log_path.open("ab") as file:
                file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))

    def log_bytes(self) -> int:
        """The length of the log, which is on the disk when this returns."""
        with self.log_path.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def cut_log(self, size: int) -> None:
        """Forget what was logged after a checkpoint that is gone back to."""
        with self.log_path.open("ab") as file:
            file.truncate(size)

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The lines of the log, of one kind if named; those that cannot be read are left out, such as a torn last one."""
        return [record for record in records(self.log_path) if kind is None or record.get("kind") == kind]

    def metrics(self, values: dict[str, Any] | None = None) -> dict[str, Any]:
        """The measures of the finished run; given values are written first."""
        path = self.path / "metrics.json"
        if values is not None:
            checkpoint.replace(path, json.dumps(values, indent=1).encode())
        found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
        return found

"""What outlasts a lent device: few files, each of which is whole.

One archive holds results, logs and the record of what is done, so that none of them comes back without the others; packed
runs, which are large, are files beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import lzma
import shutil
import tarfile
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from everything_steps import Step
from harness import RESULTS, ROOT, exactly
from packed import keep, unpacked

from nearkin import results
from nearkin.benchmark import grid as grids
from nearkin.benchmark.state import DONE, FAILED, states

ARCHIVE = "kept.tar.xz"
RECORD = "done.json"
LOG = 2**20
"""Bytes at the end of a log that are kept."""
Content = TypeVar("Content")
UNREADABLE = (OSError, EOFError, ValueError, tarfile.TarError, lzma.LZMAError)


@dataclass(frozen=True)
class Record:
    """What is known of a step.

    At ``commit`` it took ``seconds`` so far; it has ``ended``, or ``failed`` though it ended, or ``broke`` off by itself or
    at its own limit. A whole one ``took`` so long, maybe at another commit. Of runs: in these seconds ``runs`` were done,
    ``left`` were not, ``digest`` is that of the packed file.
    """

    commit: str = ""
    seconds: float = 0
    ended: bool = False
    failed: bool = False
    broke: bool = False
    took: float = 0
    runs: int = 0
    left: int = 0
    digest: str = ""


class Kept:
    """A folder that outlasts the device."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.files: dict[str, bytes] = self._read(folder / ARCHIVE, _members) or {}
        try:
            self.records = {name: Record(**found) for name, found in json.loads(self.files.get(RECORD, b"{}")).items()}
        except (ValueError, TypeError):
            self.records = {}
        self._logs = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self._logs, ignore_errors=True)
        for torn in folder.glob("*.part"):
            torn.unlink()

    def record(self, name: str, commit: str) -> Record:
        """What is known of a step at a commit."""
        found = self.records.get(name, Record())
        return found if found.commit == commit else Record(commit, took=found.took)

    def done(self, name: str, step: Step, commit: str) -> bool:
        """Whether a step need not be done: it came to its end on this very code, and its result is there."""
        record = self.record(name, commit)
        return record.ended and exactly(commit) and self.has(step, record)

    def has(self, step: Step, record: Record) -> bool:
        """Whether the result of a step is there, as it was when the record was made."""
        if step.grid:
            return (self.folder / step.result).exists() and record.digest == _digest(self.folder / step.result)
        found = _json(self.files.get(f"results/{step.result}", b""))
        return found is not None and all(part in found for part in step.parts)

    def note(self, name: str, record: Record) -> None:
        self.records[name] = record
        self.files[RECORD] = json.dumps({name: asdict(one) for name, one in self.records.items()}, indent=1).encode()

    # ------------------------------------------------------------------------------------------ to the device

    def place(self, parts: bool = True) -> dict[str, bool]:
        """Put results of before where steps go on from; of each whether it was put. Without ``parts`` one that says itself
        that it is not whole is not."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        found = {}
        for name, text in self.files.items():
            if name.startswith("results/"):
                found[Path(name).name] = parts or (_json(text) or {}).get("whole", True)
                if found[Path(name).name]:
                    (RESULTS / Path(name).name).write_bytes(text)
        return found

    def fetch(self, step: Step) -> None:
        """Put the runs of a step that were done before where it goes on from."""
        if step.grid and (self.folder / step.result).exists():
            self._read(self.folder / step.result, lambda path: _join(path, ROOT / step.grid))

    def _read(self, path: Path, read: Callable[[Path], Content]) -> Content | None:
        """What is read from a file; one that cannot be read is put aside."""
        if not path.exists():
            return None
        try:
            return read(path)
        except UNREADABLE as error:
            aside = path.replace(path.with_name(f"{path.name}.damaged"))
            print(f"{path} cannot be read and is {aside.name} now: {error}", flush=True)
            return None

    # ------------------------------------------------------------------------------------------ from the device

    def log(self, name: str) -> Path:
        """Where a step may add to its log."""
        path = self._logs / f"{name}.log"
        if not path.exists():
            path.write_bytes(self.files.get(f"logs/{name}.log", b""))
        return path

    def bring(self, name: str, step: Step) -> None:
        """Take what a step has so far, and save all."""
        with contextlib.suppress(OSError):
            with self.log(name).open("rb") as log:
                log.seek(max(0, self.log(name).stat().st_size - LOG))
                self.files[f"logs/{name}.log"] = log.read()
            if not step.grid and _json(text := (RESULTS / step.result).read_bytes()) is not None:
                self.files[f"results/{step.result}"] = text
        self.save()

    def pack(self, name: str, step: Step) -> None:
        """Pack the runs of a step."""
        if any(run.done for run in results.known(ROOT / step.grid / results.FILE).values()):
            keep(ROOT / step.grid, self.folder / step.result)
            self.note(name, replace(self.records[name], digest=_digest(self.folder / step.result)))

    def save(self) -> None:
        """Write the archive, whole or not at all."""
        part = self.folder / f"{ARCHIVE}.part"
        with tarfile.open(part, "w:xz") as archive:
            for name, content in sorted(self.files.items()):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        part.replace(self.folder / ARCHIVE)


def runs(step: Step) -> tuple[int, int]:
    """How many runs of a step are done, and how many are neither that nor given up."""
    out = ROOT / step.grid
    done = len(list(out.glob("runs/*/metrics.json")))
    try:
        return done, sum(state.status not in (DONE, FAILED) for state in states(grids.of(out).jobs, out))
    except ValueError:  # nothing says yet what is wanted
        return done, 0


def _members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        found = {entry.name: archive.extractfile(entry) for entry in archive.getmembers()}
        return {name: file.read() for name, file in found.items() if file is not None}


def _json(text: bytes) -> Any:
    """What a text says, or None where it is not whole."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _join(packed: Path, folder: Path) -> None:
    """Add the runs of a packed file that a folder lacks to it, with their lines in the results."""
    with unpacked(packed) as found:
        for run in (found / "runs").glob("*"):
            if not (folder / "runs" / run.name / "metrics.json").exists():
                shutil.copytree(run, folder / "runs" / run.name, dirs_exist_ok=True)
        have = results.known(folder / results.FILE)
        for name, result in results.known(found / results.FILE).items():
            if name not in have:
                results.append(folder / results.FILE, result)

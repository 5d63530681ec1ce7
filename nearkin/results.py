"""What finished runs leave for comparison: one line of ``results.jsonl`` each, and the answer to every query.

The file is only ever added to. A last line that was cut short by a crash is passed over, and gone when the next one is
added; a later line about the same run stands instead of an earlier one. The whole file can be made again from the folders
of the runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from nearkin import calling, locks
from nearkin.wording import count

FILE = "results.jsonl"
CURRENT = "current.json"
"""Beside the results of a benchmark: what each run is of the grid it was given last; earlier versions wrote ids alone."""
ELSEWHERE = "elsewhere-"
"""What the ids of models begin with that no benchmark has trained: they belong to every grid."""
QUERIES = "queries.safetensors"
SIMILARITIES = "similarities.json"
DONE, FAILED = "done", "failed"
MISSING = "missing"
"""What a run is that the grid asks for and that has no line in the file; no line says so itself."""
GPU, CPU = "GPU", "CPU"
SHARED = "runs_on_device"
"""The fact of ``where`` that says how many runs shared the device; results of earlier versions lack it."""

MEASURES = {"r_precision": "R-prec", "map@r": "MAP@R", "map": "mAP", "nmi": "NMI", "f1": "F1"}
"""What may be measured beside recall@k, from 0 to 1, and the heading of each."""
ROUNDING = 1e-6
"""By how much a share may lie outside 0 to 1."""


@dataclass(frozen=True)
class Result:
    """A run of a benchmark: what was trained, how it was measured, what came out, at what cost.

    - ``metrics``: the test set, at the epoch that the protocol chose, under "recall@1", ..., "map@r", "nmi";
    - ``validation``: the measures that chose the epoch, and the epoch; None where nothing was held out;
    - ``test_feedback``: what the best epoch on the test set would have given, where that was looked at;
    - ``cost``: seconds, images_per_second, peak_bytes, epochs;
    - ``folder``: of the run, seen from the folder of the results;
    - ``left_out``: how many images could not be read;
    - ``where``: device, versions, commit, and under ``SHARED`` how many runs shared the device;
    - ``untrained``: measures of the test set before the first step; None where they were not taken.
    """

    id: str
    status: str
    loss: str
    label: str
    data: str
    network: str
    dim: int
    protocol: str
    fold: int
    seed: int
    metrics: dict[str, float] = field(default_factory=dict)
    validation: dict[str, Any] | None = None
    test_feedback: dict[str, Any] | None = None
    cost: dict[str, float] = field(default_factory=dict)
    folder: str = ""
    error: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    where: dict[str, Any] = field(default_factory=dict)
    left_out: int = 0
    untrained: dict[str, float] | None = None

    @property
    def done(self) -> bool:
        return self.status == DONE

    @property
    def device(self) -> str:
        """The kind of device it was done on, ``GPU`` or ``CPU``; empty where nothing says so.

        ``where`` has the name of a device, which does not tell its kind; memory of its own is measured on a GPU alone.
        """
        if not self.done or not self.where.get("device"):
            return ""
        return GPU if "peak_bytes" in self.cost else CPU

    @property
    def total(self) -> int:
        """All numbers of a vector: ``dim`` for each level."""
        levels = str(self.settings.get("levels") or "")
        return self.dim * (3 if levels == "lmh" else len(levels.split(",")) if levels else 1)

    @property
    def experiment(self) -> tuple[str, str, int, str]:
        """What losses must share to be compared: data set, network, size of the embedding, protocol."""
        return self.data, self.network, self.dim, self.protocol


def line(result: Result) -> bytes:
    """A result as it stands in the file."""
    return json.dumps(asdict(result), sort_keys=True).encode() + b"\n"


def append(path: str | Path, result: Result) -> None:
    """Add one result; on the disk when this returns. Lines of several processes do not mix."""
    text = _readable(result)
    with alone(Path(path)) as file:
        _complete(file)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _readable(result: Result) -> bytes:
    """The line of a result that ``read`` takes: one that it does not would make the whole file unreadable."""
    try:
        text = line(result)
        wrong = _wrong(_parse(json.loads(text)))
    except (TypeError, ValueError) as error:
        wrong = str(error)
    if wrong:
        raise ValueError(f"result must be one that can be read again, got {wrong}; nothing was written.")
    return text


@contextlib.contextmanager
def alone(path: Path) -> Iterator[IO[bytes]]:
    """The file, made where there is none, to read and to add to; meanwhile no other process adds to it or replaces it."""
    while True:
        with path.open("a+b") as file:
            locks.take(file)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                yield file
                return


def _complete(file: IO[bytes]) -> None:
    """End the last line where only its end is missing; cut it off where a crash left a part of it."""
    file.seek(0)
    content = file.read()
    last = content[content.rfind(b"\n") + 1 :]
    if not last:
        return
    try:
        _parse(json.loads(last))
    except ValueError:
        file.truncate(len(content) - len(last))
    else:
        file.write(b"\n")


def read(path: str | Path) -> list[Result]:
    """The results in a file, or in the folder of a benchmark, in the order in which the runs were first written.

    Where the benchmark was given one grid after the other, those of the last one: runs with other settings are no part of
    what it compares. What that grid asks for and has no line yet comes last, under ``MISSING``: a comparison that is half
    done must not look like a whole one.
    """
    place = Path(path)
    file = place / FILE if place.is_dir() else place
    if not file.exists():
        raise ValueError(
            f"results must be a folder with {FILE}, or such a file, got {str(path)!r}; {_way_out(file, MAKE)}."
        )
    found: dict[str, Result] = {}
    content = file.read_bytes()
    for number, result in _lines(content):
        if isinstance(result, Result):
            wrong = _wrong(result)
            if wrong:
                raise ValueError(f"{file} line {number} must be a result, got {wrong}; {_way_out(file)}.")
            found[result.id] = result
        elif number <= content.count(b"\n"):
            raise ValueError(_damaged(file, number, result))
        else:
            lost = f"{file}: the last line was cut short and is left out; that run is not lost"
            warnings.warn(f"{lost}: {_way_out(file)}.", stacklevel=2)
    if not found:
        raise ValueError(f"{file} must hold at least one result, got none; run nearkin bench first.")
    return _current(file, list(found.values()))


def _current(file: Path, found: list[Result]) -> list[Result]:
    """The results of the grid that the benchmark was given last; all where nothing says which these are."""
    path = file.parent / CURRENT
    if file.name != FILE or not path.exists():
        return found
    wanted = _wanted(path)
    kept = [result for result in found if result.id in wanted or result.id.startswith(ELSEWHERE)]
    if not kept:
        raise ValueError(
            f"{file} must hold at least one result of the grid that nearkin bench was given last, got "
            f"{count(len(found), 'result')} of runs that the grid no longer has; "
            f"run nearkin bench, with the former grid to judge those, which repeats nothing."
        )
    if len(kept) < len(found):
        others = len(found) - len(kept)
        belong, left = ("belongs to a run", "it is") if others == 1 else ("belong to runs", "they are")
        warnings.warn(
            f"{file}: {others} of {len(found)} results {belong} that the grid no longer has; {left} left out.",
            stacklevel=3,
        )
    lacking = wanted.keys() - {result.id for result in kept}
    unnamed = [number for number in lacking if wanted[number] is None]
    if unnamed:
        warnings.warn(
            f"{file}: {len(unnamed)} of {len(wanted)} runs of the grid are missing; "
            f"give nearkin bench its grid again to see which.",
            stacklevel=3,
        )
    return kept + [result for number, result in wanted.items() if result is not None and number in lacking]


def _wanted(path: Path) -> dict[str, Result | None]:
    """The runs of a grid by their ids, as they are before any has begun; None where the file says no more than the id."""
    try:
        entries = json.loads(path.read_bytes())
        if not isinstance(entries, list):
            raise ValueError(f"a {type(entries).__name__}")
        return dict(_asked(entry) for entry in entries)
    except ValueError as error:
        raise ValueError(f"{path} must be a list of runs, got {error}; give nearkin bench its grid again.") from None


def _asked(entry: Any) -> tuple[str, Result | None]:
    if isinstance(entry, str):
        return entry, None
    found = _parse(entry | {"status": MISSING} if isinstance(entry, dict) else entry)
    return found.id, found


def damage(file: Path) -> str:
    """What is wrong with a line that is not the last one, which none may be, and what to do; nothing where all is well."""
    content = file.read_bytes() if file.exists() else b""
    wrong = (
        _damaged(file, number, found)
        for number, found in _lines(content)
        if isinstance(found, ValueError) and number <= content.count(b"\n")
    )
    return next(wrong, "")


def _damaged(file: Path, number: int, error: ValueError) -> str:
    return f"{file} line {number} must be a result, got {error}; {_way_out(file)}."


def known(path: Path) -> dict[str, Result]:
    """The results that can be read from a file by their ids, however damaged it is; none where there is no file."""
    content = path.read_bytes() if path.exists() else b""
    return {result.id: result for _, result in _lines(content) if isinstance(result, Result)}


def _lines(content: bytes) -> Iterator[tuple[int, Result | ValueError]]:
    """The number of each line, from 1, with its result, or with what is wrong with it; empty lines are passed over."""
    for number, text in enumerate(content.split(b"\n"), 1):
        if text.strip():
            try:
                yield number, _parse(json.loads(text))
            except ValueError as error:
                yield number, error


MAKE = "make one with nearkin bench GRID.toml"


def _way_out(file: Path, otherwise: str = "mend or remove the line") -> str:
    """What to do about a file of results that is damaged or gone."""
    if file.name == FILE and any((file.parent / "runs").glob("*/job.json")):
        return f"make the file again with {calling.line('bench', 'rebuild', file.parent)}"
    return otherwise


def _parse(record: Any) -> Result:
    if not isinstance(record, dict):
        raise ValueError(f"a {type(record).__name__}")
    known = {entry.name: entry for entry in fields(Result)}
    missing = [name for name in list(known)[:10] if name not in record]
    if missing:
        raise ValueError(f"no {missing[0]!r}")
    for name, value in record.items():
        if name in known and not isinstance(value, _KINDS.get(str(known[name].type), object)):
            raise ValueError(f"{name} {value!r}")
    return Result(**{name: value for name, value in record.items() if name in known})


# What fields hold, so that a line that somebody wrote is told of instead of failing later.
_KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "dict[str, Any]": dict,
    "dict[str, float]": dict,
    "dict[str, Any] | None": dict | None,
    "dict[str, float] | None": dict | None,
}


def _wrong(result: Result) -> str:
    """What no run can have written, in a few words; nothing where all is well."""
    if result.status not in (DONE, FAILED):
        return f"the status {result.status!r}, which is neither {DONE!r} nor {FAILED!r}"
    for part in (result.metrics, result.validation or {}, result.test_feedback or {}, result.untrained or {}):
        for name, value in part.items():
            if is_share(name) and isinstance(value, int | float) and (value < -ROUNDING or value > 1 + ROUNDING):
                return f"{name} {value:g}, which is no share from 0 to 1 (percent divided by 100)"
    return ""


def is_share(name: str) -> bool:
    """Whether this is the name of a measure from 0 to 1."""
    return name.startswith("recall@") or name in MEASURES


def heading(measure: str) -> str:
    """The usual short form of a measure.

    >>> heading("recall@1"), heading("map@r")
    ('R@1', 'MAP@R')
    """
    return MEASURES.get(measure, measure.replace("recall", "R"))


def queries(folder: str | Path, result: Result) -> dict[str, Any]:
    """What each query of a run got, as arrays, and "class_names"; empty where the run kept no such file."""
    path = Path(folder) / result.folder / QUERIES
    if not path.exists():
        return {}
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            found: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            found["class_names"] = json.loads((file.metadata() or {}).get("class_names", "[]"))
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} must hold the answers to the queries of a run, got a file that cannot be read ({error}); "
            f"restore it, or remove it to do without them."
        ) from error
    return found


def untrained(results: Iterable[Result], metric: str = "recall@1") -> dict[tuple[str, str, int, str], float]:
    """The mean of a measure before the first step, of each experiment in which runs have it: new layers and hence this
    measure differ from run to run."""
    found: dict[tuple[str, str, int, str], list[float]] = {}
    for result in results:
        if result.done and metric in (result.untrained or {}):
            found.setdefault(result.experiment, []).append((result.untrained or {})[metric])
    return {experiment: sum(values) / len(values) for experiment, values in found.items()}


def labels(results: Iterable[Result]) -> list[str]:
    """The names to show, in the order in which they first come."""
    return list(dict.fromkeys(result.label for result in results))

"""What finished runs leave for comparison: one line of ``results.jsonl`` each, and the answer to every query.

The file is only ever added to. A line that was cut short by a crash is passed over, and a later line about the same run
stands instead of an earlier one; the whole file can be made again from the folders of the runs.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

FILE = "results.jsonl"
QUERIES = "queries.safetensors"
SIMILARITIES = "similarities.json"
DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class Result:
    """A run of a benchmark: what was trained, how it was measured, what came out, at what cost.

    - ``metrics``: the test set, at the epoch that the protocol chose, under "recall@1", ..., "map@r", "nmi";
    - ``validation``: the measures that chose the epoch, and the epoch; None where nothing was held out;
    - ``test_feedback``: what the best epoch on the test set would have given, where that was looked at;
    - ``cost``: seconds, images_per_second, peak_bytes, epochs;
    - ``folder``: of the run, seen from the folder of the results.
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

    @property
    def done(self) -> bool:
        return self.status == DONE

    @property
    def experiment(self) -> tuple[str, str, int, str]:
        """What losses must share to be compared: data set, network, size of the embedding, protocol."""
        return self.data, self.network, self.dim, self.protocol


def append(path: Path, result: Result) -> None:
    """Add one result; on the disk when this returns. Lines of several processes do not mix."""
    line = json.dumps(asdict(result), sort_keys=True).encode() + b"\n"
    torn = path.exists() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (b"\n" if torn else b"") + line)
        os.fsync(file)
    finally:
        os.close(file)


def read(path: str | Path) -> list[Result]:
    """The results in a file, or in the folder of a benchmark, in the order in which the runs were first written."""
    place = Path(path)
    file = place / FILE if place.is_dir() else place
    if not file.exists():
        raise ValueError(
            f"results must be a folder with {FILE}, or such a file, got {str(path)!r}; "
            f"make one with nearkin bench GRID.toml."
        )
    found: dict[str, Result] = {}
    lines = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            result = _parse(json.loads(line))
        except ValueError as error:
            if number == len(lines):
                warnings.warn(
                    f"{file}: the last line was cut short and is left out; that run is not lost.", stacklevel=2
                )
                continue
            raise ValueError(f"{file} line {number} must be a result, got {error}; mend or remove the line.") from None
        found[result.id] = result
    if not found:
        raise ValueError(f"{file} must hold at least one result, got none; run nearkin bench first.")
    return list(found.values())


def _parse(record: Any) -> Result:
    if not isinstance(record, dict):
        raise ValueError(f"a {type(record).__name__}")
    known = {entry.name: entry for entry in fields(Result)}
    missing = [name for name in list(known)[:10] if name not in record]
    if missing:
        raise ValueError(f"no {missing[0]!r}")
    return Result(**{name: value for name, value in record.items() if name in known})


def queries(folder: str | Path, result: Result) -> dict[str, Any]:
    """What each query of a run got, as arrays, and "class_names"; empty where the run kept no such file."""
    path = Path(folder) / result.folder / QUERIES
    if not path.exists():
        return {}
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        found: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        found["class_names"] = json.loads((file.metadata() or {}).get("class_names", "[]"))
    return found


def labels(results: Iterable[Result]) -> list[str]:
    """The names to show, in the order in which they first come."""
    return list(dict.fromkeys(result.label for result in results))

"""What is kept of a benchmark's runs in the repository: results, logs of every epoch, the score and the neighbours of every
query; neither weights nor pictures, nor where files lay.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from words import listed

from nearkin import results as files
from nearkin.data.archive import extract
from nearkin.records import records

METRIC = "recall@1"
MEASURES = (METRIC, "recall@2", "recall@4", "recall@8", "map@r", "r_precision")
KEPT = (*MEASURES, "rows", "labels", "nearest", "similarity")
PLACES = ("root", "packs", "out", "weights")
"""Settings that say where a file lay; its name is kept."""
KINDS = ("epoch", "validate", "evaluate", "start", "end")
"""Lines of a log that are kept: those of single steps are many and shown nowhere."""


@contextlib.contextmanager
def unpacked(packed: Path) -> Iterator[Path]:
    """What was packed, as a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as place:
        extract(packed, place)
        yield Path(place)


def keep(folder: Path, packed: Path) -> None:
    """Pack results, logs, scores and neighbours of a benchmark's runs."""
    from safetensors import safe_open
    from safetensors.numpy import save

    current = {run.id: run for run in files.read(folder)}
    found = [run for run in current.values() if run.done]
    part = packed.with_name(f"{packed.name}.part")
    with tarfile.open(part, "w:xz", preset=9) as archive:
        lines = [json.loads(line) for line in (folder / files.FILE).read_text().splitlines() if line.strip()]
        lines = [line for line in lines if line["id"] in current]
        _add(archive, files.FILE, "".join(json.dumps(_named(line), sort_keys=True) + "\n" for line in lines).encode())
        for run in found:
            for name in ("metrics.json", "audit.jsonl", files.SIMILARITIES):
                if (folder / run.folder / name).exists():
                    _add(archive, f"{run.folder}/{name}", (folder / run.folder / name).read_bytes())
            measured = [
                line for line in (folder / run.folder / "log.jsonl").read_bytes().splitlines() if _measure(line)
            ]
            _add(archive, f"{run.folder}/log.jsonl", b"\n".join(measured) + b"\n")
            with safe_open(folder / run.folder / files.QUERIES, "numpy") as content:
                wanted = [name for name in content.keys() if name in KEPT]  # noqa: SIM118
                arrays = {name: small(name, content.get_tensor(name)) for name in wanted}
                text = content.metadata()
            _add(archive, f"{run.folder}/{files.QUERIES}", save(arrays, text))
    part.replace(packed)  # what was packed before is gone only now
    print(f"{packed}: {len(found)} runs, {packed.stat().st_size / 1e6:.1f} MB")


def _named(line: dict[str, object]) -> dict[str, object]:
    """A result with names of files instead of the places where they lay."""
    settings = line.get("settings")
    assert isinstance(settings, dict)
    named = {name: Path(value).name if name in PLACES else value for name, value in settings.items()}
    return line | {"settings": named}


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _measure(line: bytes) -> bool:
    return json.loads(line).get("kind") in KINDS


def small(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Neighbours in what says them shortest: rows in the least integers that hold them (-1: none), three digits of a cosine.

    As they are they would be most of an archive, and a row of some thousands is half of its bits.
    """
    if name == "similarity":
        return values.astype(np.float16)
    if name == "nearest":
        kinds = (np.int8, np.int16, np.int32, np.int64)
        fits = [
            np.iinfo(kind).max >= values.max(initial=0) and np.iinfo(kind).min <= values.min(initial=0)
            for kind in kinds
        ]
        return values.astype(kinds[fits.index(True)])
    return values


def settings_of(runs: Sequence[files.Result]) -> str:
    """What ``--settings`` must say to do these runs again."""
    network = runs[0].settings["network_settings"] if runs else {}
    inline = ", ".join(f"{name} = {json.dumps(value)}" for name, value in network.items())
    return "root=CUB_200_2011 weights=resnet50.safetensors" + (f" 'network_settings={{{inline}}}'" if network else "")


def made(runs: Sequence[files.Result]) -> str:
    """How many runs, on what, at which commits."""
    commits, devices = (sorted({str(run.where.get(key, "")) for run in runs} - {""}) for key in ("commit", "device"))
    star = " (*: files differed from the commit)" if any("*" in commit for commit in commits) else ""
    return f"{len(runs)} runs; {', '.join(devices)}; commit {', '.join(commits)}{star}"


def lost(folder: Path, runs: Sequence[files.Result]) -> str:
    """What a report would show had it been kept."""
    found = []
    if not any("nearest" in files.queries(folder, run) for run in runs):
        found.append("the neighbours of each query (which classes are taken for each other)")
    if not any(line.get("kind") == "epoch" for run in runs for line in records(folder / run.folder / "log.jsonl")):
        found.append("the training loss of each epoch")
    return f" Not kept of these runs: {listed(found)}." if found else ""


def write_page(words: str | None, packed: Path, place: Path, page: Callable[[], str]) -> None:
    """The command of a script that writes a page from what is packed."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", help="folder of the benchmark, to be packed first")
    arguments = parser.parse_args()
    if arguments.keep:
        keep(Path(arguments.keep), packed)
    place.write_text(page())

"""Forward + backward time and peak memory of the losses, beside pytorch-metric-learning where it has them, in one run.

    python benchmarks/losses.py                  measure all into benchmarks/results/losses-cpu.json and docs/
    python benchmarks/losses.py --only triplet   some losses; their rows replace those of the results file
    python benchmarks/losses.py --sizes 180      some batch sizes, likewise
    python benchmarks/losses.py --memory         only the memory of rows that are there already
    python benchmarks/losses.py --patience 900   let the other library take longer
    python benchmarks/losses.py --page           only rebuild the page from the saved results

Batches have 4 images a class (2 for n_pair form="mc") and 512 dimensions. Row-wise losses that the other library lacks are
measured alone against their matrix products. Time: the two libraries take turns in one process, nearkin and the bare matrix
products likewise. Memory: each measurement in a process of its own, a call of the same size before the measured one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from batches import WAY
from harness import RESULTS, ROOT, commit, conditions, interleaved, peak_memory, write
from losses_compared import ENTRIES, Entry, bare, batch, factors
from losses_page import ALONE, BESIDE, MATRIX, OTHER, label, line, page, summary

SIZES = (180, 1024, 4096)
PATIENCE = 90.0
MEMORY = 18 * 2**30
RESULT = "losses-cpu.json"
# glibc then gives freed memory back at once, so that the second call's peak is what it holds and not what was left over.
RETURNED = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def step(loss: Callable[..., torch.Tensor], embeddings: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    def run() -> None:
        loss(embeddings, labels).backward()
        embeddings.grad = None
        for parameter in getattr(loss, "parameters", list)():
            parameter.grad = None

    return run


def measure_time(entry: Entry, n: int, who: str) -> dict[str, Any]:
    embeddings, labels = batch(n, entry.images)
    ours = step(entry.make_ours(n), embeddings, labels)
    # Small batches take a millisecond or two: fifty of them hang on what else the machine does just then.
    repeats = 501 if n < 1000 else 21
    # Two rounds: what the other library allocates and gives back would slow the rest of a round, products and all.
    found = interleaved({BESIDE: ours, "products": bare(entry, n)}, repeats, seconds=8.0)
    others = {OTHER: step(entry.make_theirs(n), embeddings, labels)} if who == "both" else {}
    return found | interleaved({"nearkin": ours, **others}, repeats, seconds=6.0)


def measure_memory(entry: Entry, n: int, library: str) -> dict[str, int]:
    if library == MATRIX:
        rows, columns = factors(entry, n)

        def run() -> None:
            torch.mm(rows, columns.T)

    else:
        make = entry.make_ours if library == "nearkin" else entry.make_theirs
        run = step(make(n), *batch(n, entry.images))
    # The first call also pays, once per process, for libraries, threads and the buffers that matrix products keep, some
    # tens of MiB in either library; the second is what every later step of a training loop needs.
    run()
    return {"bytes": peak_memory(run)}


def alone(patience: float, *task: str) -> dict[str, Any] | str:
    """One measurement in a process of its own, or why there is none: the time or the memory it had was not enough."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--task", *task],
            capture_output=True,
            text=True,
            timeout=patience,
            env=os.environ | (RETURNED if task[0] == "memory" else {}),
        )
    except subprocess.TimeoutExpired:
        return f"not in {patience:.0f} s"
    if done.returncode:
        print(f"  {' '.join(task)} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        short = "memory" in done.stderr or "MemoryError" in done.stderr
        return f"not in {MEMORY // 2**30} GiB" if short else "failed"
    return dict(json.loads(done.stdout))


def measure(entries: list[tuple[int, Entry]], sizes: list[int], patience: float) -> None:
    for number, entry in entries:
        for n in sizes:
            if (n == ALONE and not entry.rowwise) or (entry.theirs is None and n < max(SIZES)):
                continue
            begin = time.perf_counter()
            both = entry.theirs is not None and n <= max(SIZES)
            times = alone(patience, "time", str(number), str(n), "both" if both else "ours")
            reason = times if isinstance(times, str) else None
            if reason is not None:
                times = alone(patience, "time", str(number), str(n), "ours")
            row = {
                "loss": entry.name,
                "settings": entry.ours,
                "theirs": entry.theirs,
                "rowwise": entry.rowwise,
                "products": entry.products,
                "differs": entry.differs,
                "n": n,
                "batch": WAY,
                "commit": commit(),
                "command": conditions()["command"],
                "milliseconds": None if isinstance(times, str) else times,
                "unfinished": reason,
            } | memory(number, n, patience)
            save([row])
            print(f"{line(row)}   ({time.perf_counter() - begin:.0f} s)", flush=True)


def memory(number: int, n: int, patience: float) -> dict[str, Any]:
    """Peak bytes of both libraries and of one bare matrix product, each in a process of its own; what does not get there is
    left out."""
    found: dict[str, int] = {}
    asked = ["nearkin"]
    if n > min(SIZES):  # a smaller matrix finds room in what the process has already, and nothing of it is seen
        asked.append(MATRIX)
    if ENTRIES[number].theirs is not None and n <= max(SIZES):
        asked.append(OTHER)
    for library in asked:
        measured = alone(patience, "memory", str(number), str(n), library)
        if not isinstance(measured, str):
            found[library] = int(measured["bytes"])
    return {"bytes": found, "memory": {"commit": commit(), "command": conditions()["command"], "way": "second call"}}


def measure_memory_again(entries: list[tuple[int, Entry]], sizes: list[int], patience: float) -> None:
    """Only the memory of rows that are there already."""
    for row in json.loads((RESULTS / RESULT).read_text())["rows"]:
        for number, entry in entries:
            if (entry.name, entry.ours, True) == (row["loss"], row["settings"], row["n"] in sizes):
                save([row | memory(number, row["n"], patience)])
                print(label(row), row["n"], flush=True)


def save(new: list[dict[str, Any]]) -> dict[str, Any]:
    """Put rows into the results file in place of older ones of the same loss and size."""
    path = RESULTS / RESULT
    order = {(entry.name, json.dumps(entry.ours)): i for i, entry in enumerate(ENTRIES)}
    rows = {key(row): row for row in [*(json.loads(path.read_text())["rows"] if path.exists() else []), *new]}
    known = sorted((row for k, row in rows.items() if k[0] in order), key=lambda row: (order[key(row)[0]], row["n"]))
    result = {"conditions": conditions(), "summary": summary(known), "rows": known}
    write(RESULT, result)
    return result


def key(row: dict[str, Any]) -> tuple[tuple[str, str], int]:
    return (row["loss"], json.dumps(row["settings"])), row["n"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="names of losses, or places in ENTRIES")
    parser.add_argument("--sizes", nargs="*", type=int, default=[*SIZES, ALONE], help="batch sizes")
    parser.add_argument("--page", action="store_true", help="only rebuild the page")
    parser.add_argument("--memory", action="store_true", help="only the memory of rows that are there already")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds that one measurement may take")
    parser.add_argument("--task", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.task:
        # Out of memory is a result of the other library's, not the end of the machine.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        kind, number, n, *more = arguments.task
        function = {"time": measure_time, "memory": measure_memory}[kind]
        print(json.dumps(function(ENTRIES[int(number)], int(n), *more)))
        return
    saved = ROOT / "benchmarks" / "results" / RESULT
    if arguments.page:
        page(json.loads(Path(saved).read_text()))
        return
    entries = [(i, e) for i, e in enumerate(ENTRIES) if not arguments.only or {e.name, str(i)} & set(arguments.only)]
    (measure_memory_again if arguments.memory else measure)(entries, arguments.sizes, arguments.patience)
    result = save([])
    print(json.dumps(result["summary"], indent=1))
    page(result)


if __name__ == "__main__":
    main()

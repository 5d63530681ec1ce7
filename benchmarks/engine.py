"""The engine on a GPU: time and memory of losses against the matrix products they need, and against pytorch-metric-learning.

    python benchmarks/engine.py                      everything, into benchmarks/results/engine-cuda.json
    python benchmarks/engine.py --parts small large  some parts; the others, and losses left out by --only, stay as they were

Batches have 4 images a class and 512 dimensions, in bfloat16. Parts: small (n = 180), large (n = 32,768), huge (ranked_list
of 131,072 and 1,048,576), exact (errors against float64, and whether two runs give the same bits), sizes (some losses from
1,024 to 131,072), profile (which kernels take the time of one call); exact_float32 has batches in float32. With --ahead
everything is compiled first, one process for each loss: what a first call takes is then little. With --go-on rows that
were measured at this commit stay as they are.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from batches import WAY
from engine_compared import IMAGES, LARGE, Step, batch, make, matrix_bytes, products
from engine_exact import EXACT, PRECISIONS, exact
from engine_measures import measured, milliseconds, shown
from engine_theirs import Theirs
from harness import RESULTS, Row, conditions, end, merged, place, rows_at_hand, write

Found = dict[str, Any]

RESULT = "engine-cuda.json"
SIZES = tuple(2**power for power in range(10, 18))
HUGE = (131072, 1048576)
LARGE_BATCH = 32768
SHOWN = ("contrastive", "multi_similarity", "ranked_list", "supcon")
SPECIAL, EXACT_LARGE = ("ranked_list", "proxy_anchor"), 16384
KEYS = ("loss", "n", "precision")
"""What tells the rows of a part apart."""
COMPILING = 180
"""Seconds after which nobody waits any more for what is compiled ahead."""


@dataclass(frozen=True)
class Work:
    """What is measured: losses, engines, the other library; and the rows of a part that are there, by ``KEYS``."""

    entries: list[str]
    engines: tuple[str, ...]
    theirs: Theirs
    known: dict[Row, Found] = field(default_factory=dict)


def side_by_side(n: int, work: Work) -> Iterator[Found]:
    """Each row twice: as soon as our part of it is there, and with theirs, which may take long or be stopped over it."""
    for entry in work.entries:
        row = work.known.get((entry, n, None))
        if row is None:
            row = ours(entry, n, work.engines)
            yield row
        if LARGE[entry][3] is not None and "theirs" not in row:
            gc.collect()
            torch.cuda.empty_cache()  # room for the other process
            other = work.theirs.measured(entry, n)
            if other is not None:
                row["theirs"] = other
                print(f"{entry:20s} n={n:8d} {'theirs':10s} {shown(other)}", flush=True)
                yield row


def ours(entry: str, n: int, engines: tuple[str, ...]) -> Found:
    """A row without the other library: bare matrix products and engines."""
    number = LARGE[entry][2]
    columns = n // IMAGES if entry == "proxy_anchor" else None
    row: Found = {"loss": entry, "n": n, "batch": WAY, "products": number}
    row["bare"] = milliseconds(products(n, number, columns))["median"]
    row["bare bytes"] = matrix_bytes(n, columns)
    for engine in engines:
        row[engine] = measured(Step(make(entry, n, engine), *batch(n)))
        ratio = row[engine].get("median", float("nan")) / row["bare"]
        print(f"{entry:20s} n={n:8d} {engine:10s} {shown(row[engine])}  {ratio:.2f} x {row['bare']:.2f} ms", flush=True)
    return row


def profile(entry: str, n: int) -> list[dict[str, Any]]:
    """Where the time of one call goes: the kernels of the compiled engine, and how long the host took to launch them."""
    embeddings, labels = batch(n)
    run = Step(make(entry, n, "compiled"), embeddings, labels)
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as found:
        run()
        torch.cuda.synchronize()
    rows = [
        {
            "kernel": x.key[:90],
            "calls": x.count,
            "device us": x.self_device_time_total,
            "host us": x.self_cpu_time_total,
        }
        for x in found.key_averages()
    ]
    rows = sorted(rows, key=lambda row: -max(row["device us"], row["host us"]))[:18]
    print(f"{entry} n={n}")
    for row in rows:
        print(
            f"  {row['device us']:10.0f} us {row['host us']:10.0f} us host {row['calls']:6d} x {row['kernel']}",
            flush=True,
        )
    return rows


def small(work: Work) -> Iterator[Found]:
    yield from side_by_side(180, replace(work, engines=("auto", "dense", *work.engines)))


def large(work: Work) -> Iterator[Found]:
    yield from side_by_side(LARGE_BATCH, work)


def sizes(work: Work) -> Iterator[Found]:
    for n in SIZES:
        few = [entry for entry in SHOWN if entry in work.entries]
        yield from side_by_side(n, replace(work, entries=few, engines=("compiled",)))


def huge(work: Work) -> Iterator[Found]:
    for n in HUGE:
        yield from side_by_side(n, replace(work, entries=["ranked_list"], engines=("compiled",)))


def kernels(work: Work) -> Iterator[Found]:
    for entry, n in itertools.product(work.entries, (180, LARGE_BATCH)):
        if (entry, n, None) not in work.known:
            yield {"loss": entry, "n": n, "kernels": profile(entry, n)}


def exact_at(numbers: tuple[int, ...], batches: int = 6, *precisions: str | None) -> Callable[[Work], Iterator[Found]]:
    def part(work: Work) -> Iterator[Found]:
        for n, precision, entry in itertools.product(numbers, precisions or (None,), work.entries):
            if (entry, n, precision) not in work.known:
                yield exact(entry, n, batches, precision)

    return part


def exact_large(work: Work) -> Iterator[Found]:
    """Where proxy_anchor goes its own way, and ranked_list beside it."""
    few = [entry for entry in SPECIAL if entry in work.entries]
    yield from exact_at((EXACT_LARGE,), 12)(replace(work, entries=few))


PARTS: dict[str, Callable[[Work], Iterator[Found]]] = {
    "small": small,
    "large": large,
    "huge": huge,
    "exact": exact_at(EXACT),
    "exact_large": exact_large,
    "exact_float32": exact_at(EXACT[:1], 6, *PRECISIONS),
    "sizes": sizes,
    "profile": kernels,
}


def batches(entry: str, parts: list[str], known: dict[str, set[Row]]) -> list[str]:
    """The batches that some parts have still to measure a loss with, as ``compile_only`` reads them."""
    found: dict[str, list[Row]] = {part: [] for part in PARTS}
    found["small"], found["large"] = [(entry, 180, None)], [(entry, LARGE_BATCH, None)]
    found["profile"] = found["small"] + found["large"]
    found["exact"] = [(entry, n, None) for n in EXACT]
    found["exact_float32"] = [(entry, EXACT[0], precision) for precision in PRECISIONS]
    if entry in SPECIAL:
        found["exact_large"] = [(entry, EXACT_LARGE, None)]
    if entry in SHOWN:
        found["sizes"] = [(entry, n, None) for n in SIZES]
    if entry == "ranked_list":
        found["huge"] = [(entry, HUGE[0], None)]
    left = [row for part in parts for row in found[part] if row not in known.get(part, set())]
    return sorted({f"{n} float32" if precision else f"{n} bfloat16" for _, n, precision in left})


def ahead(entries: list[str], parts: list[str], known: dict[str, set[Row]]) -> None:
    """Fill the compiler's cache."""
    wanted = {entry: found for entry in entries if (found := batches(entry, parts, known))}
    work = {
        entry: subprocess.Popen([sys.executable, __file__, "--compile", entry, *found])
        for entry, found in wanted.items()
    }
    until = time.monotonic() + COMPILING
    for entry, process in work.items():
        try:
            code = process.wait(max(0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code:
            print(f"{entry} could not be compiled ahead", flush=True)


def compile_only(entry: str, wanted: list[str]) -> None:
    for words in wanted:
        n, dtype = words.split()
        embeddings, labels = batch(int(n), dtype=getattr(torch, dtype))
        Step(make(entry, int(n), "compiled"), embeddings, labels)()
    torch.cuda.synchronize()


def measure(
    parts: list[str], work: Work, known: dict[str, dict[Row, Found]], result: dict[str, Any]
) -> Iterator[tuple[str, bool]]:
    """Do parts one after the other, into the results file; says of each whether it came to its end."""
    for part in parts:
        before, rows = result.get(part), {}
        try:
            for row in PARTS[part](replace(work, known=known[part])):
                rows[place(row, KEYS)] = row
                # After every row, so that what comes later cannot lose it.
                result[part] = merged(before, {"conditions": conditions(), "rows": [*rows.values()]}, KEYS)
                write(RESULT, result)
            torch.cuda.synchronize()
            yield part, True
        except Exception:  # the other parts are still worth their time
            traceback.print_exc()
            yield part, False


def main() -> None:
    if sys.argv[1:2] == ["--compile"]:
        return compile_only(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=[*PARTS], choices=[*PARTS])
    parser.add_argument("--only", nargs="*", default=list(LARGE), choices=list(LARGE))
    parser.add_argument("--engines", nargs="*", default=["compiled"])
    parser.add_argument("--ahead", action="store_true", help="compile everything first, several losses at once")
    parser.add_argument("--go-on", action="store_true", help="leave rows as they are that were measured at this commit")
    arguments = parser.parse_args()
    if importlib.util.find_spec("pytorch_metric_learning") is None:
        raise SystemExit("pytorch-metric-learning must be there to be measured beside; pip install it.")
    path = RESULTS / RESULT
    result = json.loads(path.read_text()) if path.exists() else {}
    now = conditions()
    known = {part: rows_at_hand(result.get(part), now, KEYS) if arguments.go_on else {} for part in arguments.parts}
    if arguments.ahead:
        ahead(arguments.only, arguments.parts, {part: set(rows) for part, rows in known.items()})
    # Workspaces that matrix products keep once and for all belong to no loss.
    warm = make("contrastive", 4096, "compiled")
    for _ in range(3):
        Step(warm, *batch(4096))()
    with Theirs() as other:
        work = Work(arguments.only, tuple(arguments.engines), other)
        failed = [part for part, whole in measure(arguments.parts, work, known, result) if not whole]
    print("saved", path)
    end(failed, any(rows_at_hand(result.get(part), now, KEYS) for part in arguments.parts))
    if other.broken:
        raise SystemExit("not finished: rows of the other library")


if __name__ == "__main__":
    main()

"""The engine on a GPU: time and memory of losses against the matrix products they need, and against pytorch-metric-learning.

    python benchmarks/engine.py                      everything, into benchmarks/results/engine-cuda.json
    python benchmarks/engine.py --parts small large  some parts; the others, and losses left out by --only, stay as they were

Batches have 4 images a class and 512 dimensions, in bfloat16. Parts: small (n = 180), large (n = 32,768), huge (ranked_list
of 131,072 and 1,048,576), exact (errors against float64, and whether two runs give the same bits), sizes (some losses from
1,024 to 131,072), profile (which kernels take the time of one call). With --ahead everything is compiled first, one process
for each loss: what a first call takes is then little.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch
from batches import WAY
from engine_compared import IMAGES, LARGE, Step, batch, make, matrix_bytes, products, theirs
from engine_exact import EXACT, exact
from engine_measures import measured, milliseconds, shown
from harness import RESULTS, conditions, merged, write

RESULT = "engine-cuda.json"
SIZES = tuple(2**power for power in range(10, 18))
HUGE = (131072, 1048576)
LARGE_BATCH = 32768
SHOWN = ("contrastive", "multi_similarity", "ranked_list", "supcon")


def side_by_side(n: int, engines: tuple[str, ...], entries: list[str]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        number = LARGE[entry][2]
        columns = n // IMAGES if entry == "proxy_anchor" else None
        row: dict[str, Any] = {"loss": entry, "n": n, "batch": WAY, "products": number}
        row["bare"] = milliseconds(products(n, number, columns))["median"]
        row["bare bytes"] = matrix_bytes(n, columns)
        for engine in engines:
            row[engine] = measured(Step(make(entry, n, engine), *batch(n)))
            ratio = row[engine].get("median", float("nan")) / row["bare"]
            print(
                f"{entry:20s} n={n:8d} {engine:10s} {shown(row[engine])}  {ratio:.2f} x {row['bare']:.2f} ms",
                flush=True,
            )
        other = theirs(entry, n)
        if other is not None:
            row["theirs"] = measured(Step(other, *batch(n)))
            print(f"{entry:20s} n={n:8d} {'theirs':10s} {shown(row['theirs'])}", flush=True)
        torch.cuda.empty_cache()
        yield row


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


def side_by_side_at(n: int) -> Callable[[list[str], tuple[str, ...]], Iterator[dict[str, Any]]]:
    return lambda entries, engines: side_by_side(n, engines, entries)


def sizes(entries: list[str], engines: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for n in SIZES:
        yield from side_by_side(n, ("compiled",), [entry for entry in SHOWN if entry in entries])


def huge(entries: list[str], engines: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for n in HUGE:
        yield from side_by_side(n, ("compiled",), ["ranked_list"])


def kernels(entries: list[str], engines: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for entry, n in itertools.product(entries, (180, LARGE_BATCH)):
        yield {"loss": entry, "n": n, "kernels": profile(entry, n)}


def exact_large(entries: list[str], engines: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Where proxy_anchor goes its own way, and ranked_list beside it."""
    yield from exact([entry for entry in ("ranked_list", "proxy_anchor") if entry in entries], (16384,), 12)


PARTS: dict[str, Callable[[list[str], tuple[str, ...]], Iterator[dict[str, Any]]]] = {
    "small": lambda entries, engines: side_by_side(180, ("auto", "dense", *engines), entries),
    "large": side_by_side_at(LARGE_BATCH),
    "huge": huge,
    "exact": lambda entries, engines: exact(entries),
    "exact_large": exact_large,
    "sizes": sizes,
    "profile": kernels,
}


def numbers(entry: str, parts: list[str]) -> list[int]:
    """The sizes of batches that some parts measure a loss with."""
    found = {"small": [180], "large": [LARGE_BATCH], "exact": list(EXACT), "profile": [180, LARGE_BATCH]}
    found["sizes"] = list(SIZES) if entry in SHOWN else []
    found["exact_large"] = [16384] if entry in ("ranked_list", "proxy_anchor") else []
    found["huge"] = list(HUGE[:1]) if entry == "ranked_list" else []
    return sorted({n for part in parts for n in found[part]})


def ahead(entries: list[str], parts: list[str]) -> None:
    """Fill the compiler's cache."""
    work = [
        subprocess.Popen([sys.executable, __file__, "--compile", entry, *map(str, numbers(entry, parts))])
        for entry in entries
    ]
    for entry, process in zip(entries, work, strict=True):
        if process.wait():
            print(f"{entry} could not be compiled ahead", flush=True)


def compile_only(entry: str, sizes: list[int]) -> None:
    for n in sizes:
        embeddings, labels = batch(n)
        Step(make(entry, n, "compiled"), embeddings, labels)()
    torch.cuda.synchronize()


def main() -> None:
    if sys.argv[1:2] == ["--compile"]:
        return compile_only(sys.argv[2], [int(n) for n in sys.argv[3:]])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=[*PARTS], choices=[*PARTS])
    parser.add_argument("--only", nargs="*", default=list(LARGE), choices=list(LARGE))
    parser.add_argument("--engines", nargs="*", default=["compiled"])
    parser.add_argument("--ahead", action="store_true", help="compile everything first, several losses at once")
    arguments = parser.parse_args()
    if importlib.util.find_spec("pytorch_metric_learning") is None:
        raise SystemExit("pytorch-metric-learning must be there to be measured beside; pip install it.")
    if arguments.ahead:
        ahead(arguments.only, arguments.parts)
    # Workspaces that matrix products keep once and for all belong to no loss.
    warm = make("contrastive", 4096, "compiled")
    for _ in range(3):
        Step(warm, *batch(4096))()
    path = RESULTS / RESULT
    result = json.loads(path.read_text()) if path.exists() else {}
    failed = []
    for part in arguments.parts:
        rows: list[dict[str, Any]] = []
        before = result.get(part)
        try:
            for row in PARTS[part](arguments.only, tuple(arguments.engines)):
                rows.append(row)
                # After every row, so that what comes later cannot lose it.
                result[part] = merged(before, {"conditions": conditions(), "rows": rows}, ("loss", "n"))
                write(RESULT, result)
            torch.cuda.synchronize()
        except Exception:  # the other parts are still worth their time
            traceback.print_exc()
            failed.append(part)
    print("saved", path)
    if failed:
        raise SystemExit(f"not finished: {', '.join(failed)}")


if __name__ == "__main__":
    main()

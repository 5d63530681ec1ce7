"""Where the time of one block goes on a GPU: its matrix products, its compiled step, and what choices change.

    python benchmarks/steps.py                       into benchmarks/results/steps-cuda.json
    python benchmarks/steps.py --only ranked_list    some losses
    python benchmarks/steps.py --parts products      some parts: products, steps, calls

All times are for a whole batch of 32,768: a block's time times the number of blocks. Parts: products (the three matrix
products of a block, for blocks of several sizes and inner products in 32 or 16 bits), steps (the compiled step alone, kernel
by kernel: whole or in stages, inner products in 32 or 16 bits), calls (the whole loss with its gradient, replayed, for
blocks of several sizes).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any

import torch
from engine import DIM, LARGE, batch, make, measured, step
from harness import conditions, write

from nearkin.engine import compiled, product, size, stages
from nearkin.engine.blocked import blocked

N = 32768
ROWS = (256, 512, 1024, 2048)


def milliseconds(function: Callable[[], Any], rounds: int = 20) -> float:
    """Of one call, as the device sees it, calls one after the other."""
    for _ in range(3):
        function()
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for _ in range(rounds):
        function()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / rounds


def products() -> list[dict[str, Any]]:
    vectors = torch.randn(N, DIM, device="cuda").bfloat16()
    found = []
    for rows, kind in itertools.product(ROWS, (torch.float32, torch.bfloat16)):
        dot = torch.empty(rows, N, device="cuda", dtype=kind)
        slope = torch.empty(rows, N, device="cuda", dtype=torch.bfloat16)
        part, total = torch.empty(rows, DIM, device="cuda"), torch.zeros(N, DIM, device="cuda")
        times = {
            "inner": milliseconds(lambda dot=dot, rows=rows: product.product(vectors[:rows], vectors.T, dot)),
            "rows": milliseconds(lambda slope=slope, part=part: product.product(slope, vectors, part)),
            "columns": milliseconds(
                lambda slope=slope, total=total, rows=rows: product.add_product(total, slope.T, vectors[:rows])
            ),
        }
        row = {"rows": rows, "inner products": str(kind), **{key: x * N / rows for key, x in times.items()}}
        print(row, flush=True)
        found.append(row)
    return found


class Timed:
    """A compiled step that notes how long it takes on the first block, and each of its kernels (microseconds)."""

    def __init__(self, inner: compiled.Compiled) -> None:
        self.inner, self.found, self.kernels = inner, 0.0, {}  # type: ignore[var-annotated]

    def __call__(self, *given: Any) -> Any:
        if not self.found:
            kept = given[2].clone()  # the step writes over its inner products
            self.found = milliseconds(lambda: self.inner(*given))
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
                self.inner(*given)
                torch.cuda.synchronize()
            events = [x for x in seen.key_averages() if x.self_device_time_total > 0]
            self.kernels = {x.key[:60]: round(x.self_device_time_total, 1) for x in events}
            given[2].copy_(kept)
        return self.inner(*given)


def steps(entries: list[str]) -> list[dict[str, Any]]:
    found = []
    for entry, narrow, whole in itertools.product(entries, (False, True), (False, True)):
        stages.LEAST, product.NARROW = (2**60 if whole else 2**22), (0 if narrow else 2**60)
        embeddings, labels = batch(N)
        loss = make(entry, N, "compiled")
        plan = loss.plan(embeddings, labels)
        timed = Timed(compiled.Compiled(plan, "inductor"))
        row: dict[str, Any] = {"loss": entry, "step": "whole" if whole else "in stages"}
        row["inner products"] = "bfloat16" if narrow else "float32"
        try:
            blocked(plan, timed)
            rows, columns = plan.masks.shape
            row["milliseconds"] = timed.found * rows / size.block_rows(rows, columns, embeddings.device)
            row["kernels"] = timed.kernels
        except Exception as error:  # one way that fails does not lose the others
            row["unfinished"] = f"{type(error).__name__}: {str(error)[:200]}"
        print(row, flush=True)
        found.append(row)
    return found


def calls(entries: list[str]) -> list[dict[str, Any]]:
    found = []
    for entry, rows, narrow in itertools.product(entries, ROWS[-2:], (False, True)):
        product.NARROW, size.GPU_BLOCK = (0 if narrow else 2**60), rows * N
        embeddings, labels = batch(N)
        row: dict[str, Any] = {"loss": entry, "rows": rows, "inner products": "bfloat16" if narrow else "float32"}
        row |= measured(step(make(entry, N, "compiled"), embeddings, labels))
        print(row, flush=True)
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=["products", "steps", "calls"])
    parser.add_argument(
        "--only", nargs="*", default=["ranked_list", "multi_similarity", "contrastive"], choices=list(LARGE)
    )
    arguments = parser.parse_args()
    result: dict[str, Any] = {"conditions": conditions(), "n": N}
    if "products" in arguments.parts:
        result["products"] = products()
    before = stages.LEAST, product.NARROW, size.GPU_BLOCK
    if "steps" in arguments.parts:
        result["steps"] = steps(arguments.only)
    stages.LEAST, product.NARROW, size.GPU_BLOCK = before
    if "calls" in arguments.parts:
        result["calls"] = calls(arguments.only)
    print("saved", write("steps-cuda.json", result))


if __name__ == "__main__":
    main()

"""The engine on a GPU: time and memory of losses against the matrix products they need, and against pytorch-metric-learning.

    python benchmarks/engine.py                      everything, into benchmarks/results/engine-cuda.json
    python benchmarks/engine.py --parts small large  some parts, the others are kept as they were

Batches have 4 images a class and 512 dimensions, in bfloat16. Parts: small (n = 180), large (n = 32,768), huge (ranked_list
of 131,072 and 1,048,576), exact (errors against float64, and whether two runs give the same bits), sizes (some losses from
1,024 to 131,072), profile (which kernels take the time of one call). With --ahead everything is compiled first, one process
for each loss: what a first call takes is then little.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from harness import RESULTS, conditions, write
from torch import Tensor

import nearkin.engine
from nearkin import losses
from nearkin.engine import dense

RESULT = "engine-cuda.json"
DIM, IMAGES, LARGE_BATCH = 512, 4, 32768
SIZES = tuple(2**power for power in range(10, 18))
EXACT, HUGE = (4096, 8192), (131072, 1048576)
SHOWN = ("contrastive", "multi_similarity", "ranked_list", "supcon")
# Loss, settings, how many matrix products it needs, and its counterpart: class, options, miner.
Counterpart = tuple[str, dict[str, Any], tuple[str, dict[str, Any]] | None]
LARGE: dict[str, tuple[str, dict[str, Any], int, Counterpart | None]] = {
    "ranked_list": ("ranked_list", {}, 2, ("RankedListLoss", {"margin": 0.4, "Tn": 10, "alpha": 1.2}, None)),
    "multi_similarity": (
        "multi_similarity",
        {},
        3,
        ("MultiSimilarityLoss", {"alpha": 2, "beta": 50, "base": 0.5}, ("MultiSimilarityMiner", {"epsilon": 0.1})),
    ),
    "contrastive": ("contrastive", {}, 3, ("ContrastiveLoss", {"pos_margin": 1, "neg_margin": 0.5}, None)),
    "margin": ("margin", {"miner": None}, 3, ("MarginLoss", {}, None)),
    "margin, distance_weighted": ("margin", {}, 3, None),
    "binomial_deviance": ("binomial_deviance", {}, 3, None),
    "lifted_structure": (
        "lifted_structure",
        {"form": "generalized"},
        3,
        ("GeneralizedLiftedStructureLoss", {}, None),
    ),
    "supcon": ("supcon", {}, 3, ("SupConLoss", {"temperature": 0.1}, None)),
    "proxy_anchor": ("proxy_anchor", {}, 3, ("ProxyAnchorLoss", {"margin": 0.1, "alpha": 32}, None)),
}


def batch(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator("cuda").manual_seed(seed)
    labels = torch.arange(n, device="cuda") // IMAGES
    centers = torch.randn(-(-n // IMAGES), DIM, device="cuda", generator=generator)
    noise = torch.randn(n, DIM, device="cuda", generator=generator)
    return noise.add_(centers[labels], alpha=0.7).bfloat16().requires_grad_(True), labels


def make(entry: str, n: int, engine: str) -> Any:
    name, settings, *_ = LARGE[entry]
    proxy = {"classes": n // IMAGES, "dim": DIM} if issubclass(losses.LOSSES[name], losses.ProxyLoss) else {}
    loss = losses.create(name, engine=engine, **settings, **proxy).cuda()
    if entry == "margin, distance_weighted":
        loss.members = IMAGES  # as a sampler tells it, so that nobody has to count
    return loss


def theirs(entry: str, n: int) -> Callable[..., Tensor] | None:
    found = LARGE[entry][3]
    if found is None:
        return None
    import pytorch_metric_learning.losses as library
    import pytorch_metric_learning.miners as miners

    kind, options, miner = found
    if kind == "ProxyAnchorLoss":
        options = options | {"num_classes": n // IMAGES, "embedding_size": DIM}
    loss = getattr(library, kind)(**options).cuda()
    if miner is None:
        return loss  # type: ignore[no-any-return]
    mined = getattr(miners, miner[0])(**miner[1])
    return lambda embeddings, labels: loss(embeddings, labels, mined(embeddings, labels))


@dataclass
class Step:
    """One call of a loss, forward and backward."""

    loss: Callable[..., Tensor]
    embeddings: Tensor
    labels: Tensor

    @property
    def leaves(self) -> list[Tensor]:
        return [self.embeddings, *getattr(self.loss, "parameters", list)()]

    def clear(self) -> None:
        for leaf in self.leaves:
            leaf.grad = None

    def __call__(self) -> None:
        self.clear()
        self.loss(self.embeddings, self.labels).backward()


def products(n: int, number: int, columns: int | None = None) -> Callable[[], None]:
    """The bare matrix products, whole or in blocks where the matrix would be larger than 2 GiB."""
    rows = torch.randn(n, DIM, device="cuda", dtype=torch.bfloat16)
    other = rows if columns is None else torch.randn(columns, DIM, device="cuda", dtype=torch.bfloat16)
    block = min(n, max(128, 2**30 // len(other)))
    matrix = torch.empty(block, len(other), device="cuda", dtype=torch.bfloat16)
    grad, total = torch.empty_like(rows), torch.zeros_like(other)

    def run() -> None:
        for begin in range(0, n, block):
            part = rows[begin : begin + block]
            found = torch.mm(part, other.T, out=matrix[: len(part)])
            torch.mm(found, other, out=grad[begin : begin + block])
            if number > 2:
                total.addmm_(found.T, part)

    return run


def milliseconds(function: Callable[[], Any], seconds: float = 0.5) -> dict[str, float]:
    """Median and spread of calls as the device saw them, launches and all; of calls that take seconds, two."""
    begin = time.perf_counter()
    function()
    torch.cuda.synchronize()
    least = 2 if time.perf_counter() - begin > 2 else 5
    for _ in range(least - 2):
        function()
    torch.cuda.synchronize()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < least or (len(times) < 200 and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return {"median": statistics.median(times), "low": min(times), "high": max(times), "rounds": len(times)}


def kept() -> int:
    """Bytes of tensors, and of what recordings keep for themselves beside the tensors in it."""
    torch.cuda.synchronize()
    own = (x for x in torch.cuda.memory_snapshot() if tuple(x["segment_pool_id"]) != (0, 0))
    return torch.cuda.memory_allocated() + sum(x["total_size"] - x["allocated_size"] for x in own)


def memory(step: Step, beforehand: int) -> tuple[int, int]:
    """Bytes that a call takes beyond inputs and gradient, with what is kept between calls; and the latter alone: what is
    ``kept`` beyond that number."""
    step.clear()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    held = kept() - beforehand
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    gradient = sum(leaf.nbytes for leaf in step.leaves)
    return torch.cuda.max_memory_allocated() - before + held - gradient, held


def measured(step: Step) -> dict[str, Any]:
    """Time, memory beyond inputs and gradient, and how long the first call took (compilation); or why there is none."""
    gc.collect()  # what earlier losses held must not be given back in between
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = kept()
    begin = time.perf_counter()
    try:
        step()
        torch.cuda.synchronize()
        first = time.perf_counter() - begin
        found = milliseconds(step)
        taken, held = memory(step, before)
        return {**found, "bytes": taken, "held": held, "first": first}
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"unfinished": "out of memory"}
    except Exception as error:  # one loss that fails does not lose the others
        return {"unfinished": f"{type(error).__name__}: {str(error)[:300]}"}


def shown(row: dict[str, Any]) -> str:
    if "unfinished" in row:
        return str(row["unfinished"])
    return f"{row['median']:9.3f} ms {row['bytes'] / 2**20:9.1f} MiB  first call {row['first']:.1f} s"


RECORDED = "dense, recorded"
"""What "auto" could be for small batches: nothing compiled, but launched as one."""


@contextlib.contextmanager
def recording(engine: str) -> Iterator[str]:
    """The engine to make a loss with, and every call recorded if it says so."""
    before = nearkin.engine.possible
    if engine == RECORDED:
        nearkin.engine.possible = lambda kind, given: True
    try:
        yield "dense" if engine == RECORDED else engine
    finally:
        nearkin.engine.possible = before


def side_by_side(n: int, engines: tuple[str, ...], entries: list[str]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        number = LARGE[entry][2]
        columns = n // IMAGES if entry == "proxy_anchor" else None
        row: dict[str, Any] = {"loss": entry, "n": n, "products": number}
        row["bare"] = milliseconds(products(n, number, columns))["median"]
        for engine in engines:
            embeddings, labels = batch(n)
            with recording(engine) as kind:
                row[engine] = measured(Step(make(entry, n, kind), embeddings, labels))
            ratio = row[engine].get("median", float("nan")) / row["bare"]
            print(
                f"{entry:20s} n={n:8d} {engine:10s} {shown(row[engine])}  {ratio:.2f} x {row['bare']:.2f} ms",
                flush=True,
            )
        try:
            other = theirs(entry, n)
        except ImportError:
            other = None
        if other is not None:
            embeddings, labels = batch(n)
            row["theirs"] = measured(Step(other, embeddings, labels))
            print(f"{entry:20s} n={n:8d} {'theirs':10s} {shown(row['theirs'])}", flush=True)
        torch.cuda.empty_cache()
        yield row


def plain(loss: Any, embeddings: Tensor, labels: Tensor) -> Tensor:
    """The loss as plain torch does it in bfloat16: one product of 16-bit vectors, the rest in float32 under autograd."""
    plan = loss.plan(embeddings, labels)
    columns = plan.columns if plan.column_gradient else plan.columns.detach()
    dot = (plan.queries.bfloat16() @ columns.bfloat16().T).float()
    return dense(plan, dot=dot)


def exact(entries: list[str], numbers: tuple[int, ...] = EXACT, batches: int = 6) -> Iterator[dict[str, Any]]:
    """Errors against float64 beside those of plain dense torch in bfloat16, as roots of mean squares over several batches,
    since the error of one value is a matter of luck; and whether two runs give equal bits."""
    for n, entry in itertools.product(numbers, entries):
        if entry == "margin, distance_weighted":
            continue  # which negatives are drawn hangs on the last digit
        errors: dict[str, list[tuple[float, float]]] = {"compiled": [], "plain": []}
        same = True
        loss, truth = make(entry, n, "compiled"), make(entry, n, "dense").double()
        truth.load_state_dict(loss.state_dict())
        for seed in range(batches):
            embeddings, labels = batch(n, seed=seed)
            precise = embeddings.detach().double().requires_grad_(True)
            value = truth(precise, labels)
            value.backward()
            assert precise.grad is not None
            for name, seen in errors.items():
                grads: list[Tensor] = []
                for _ in range(2):
                    leaf = embeddings.detach().clone().requires_grad_(True)
                    got = loss(leaf, labels) if name == "compiled" else plain(loss, leaf, labels)
                    got.backward()
                    assert leaf.grad is not None
                    grads.append(leaf.grad)
                off = float((grads[0].double() - precise.grad).norm() / precise.grad.norm())
                seen.append((float(got.detach() / value.detach()) - 1, off))
                same = same and (name == "plain" or torch.equal(*grads))
        row: dict[str, Any] = {"loss": entry, "n": n, "batches": batches, "same bits": same}
        for name, seen in errors.items():
            row[name] = {
                part: math.sqrt(statistics.fmean(x[place] ** 2 for x in seen))
                for place, part in enumerate(("value", "gradient"))
            }
        print(json.dumps(row), flush=True)
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
    yield from exact([entry for entry in ("ranked_list", "proxy_anchor") if entry in entries], (16384,), 3)


PARTS: dict[str, Callable[[list[str], tuple[str, ...]], Iterator[dict[str, Any]]]] = {
    "small": lambda entries, engines: side_by_side(180, ("auto", RECORDED, *engines), entries),
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
    for process in work:
        process.wait()


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
    if arguments.ahead:
        ahead(arguments.only, arguments.parts)
    # Workspaces that matrix products keep once and for all belong to no loss.
    warm = make("contrastive", 4096, "compiled")
    for _ in range(3):
        Step(warm, *batch(4096))()
    path = RESULTS / RESULT
    result = json.loads(path.read_text()) if path.exists() else {}
    for part in arguments.parts:
        rows: list[dict[str, Any]] = []
        for row in PARTS[part](arguments.only, tuple(arguments.engines)):
            rows.append(row)
            # After every row, so that what comes later cannot lose it.
            result[part] = {"conditions": conditions(), "rows": rows}
            write(RESULT, result)
    print("saved", path)


if __name__ == "__main__":
    main()

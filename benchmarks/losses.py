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
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from harness import RESULTS, ROOT, commit, conditions, fill, interleaved, peak_memory, write

from nearkin import engine, losses

DIM, IMAGES = 512, 4
SIZES = (180, 1024, 4096)
ALONE = 16_384
PATIENCE = 90.0
MEMORY = 18 * 2**30
RESULT = "losses-cpu.json"
OTHER = "pytorch-metric-learning"
BESIDE = "nearkin, taking turns with products"
# glibc then gives freed memory back at once, so that the second call's peak is what it holds and not what was left over.
RETURNED = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


@dataclass(frozen=True)
class Entry:
    """A loss in both libraries, or in ours alone. ``products``: matrix products, 2 where columns get no gradient."""

    name: str
    theirs: str | None = None
    ours: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    miner: tuple[str, dict[str, Any]] | None = None
    products: int = 3
    cosine: bool = False
    images: int = IMAGES
    # What is the same in name only; see docs/from-pytorch-metric-learning.md.
    differs: bool = False

    @property
    def proxy(self) -> bool:
        return issubclass(losses.LOSSES[self.name], losses.ProxyLoss)

    @property
    def rowwise(self) -> bool:
        return bool(self.make_ours(8).rowwise)

    def make_ours(self, n: int) -> Any:
        proxy = {"classes": n // IMAGES, "dim": DIM} if self.proxy else {}
        return losses.create(self.name, **self.ours, **proxy)

    def make_theirs(self, n: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        import pytorch_metric_learning.distances as distances
        import pytorch_metric_learning.losses as library
        import pytorch_metric_learning.miners as miners
        import pytorch_metric_learning.regularizers as regularizers

        assert self.theirs is not None
        options = dict(self.options)
        if self.proxy:
            options |= {"num_classes": n // IMAGES, "embedding_size": DIM}
        if self.name == "soft_triple":  # the term that merges centers, which is an option there
            merge = regularizers.SparseCentersRegularizer(n // IMAGES, options["centers_per_class"])
            options |= {"weight_regularizer": merge, "weight_reg_weight": 0.2}
        if self.cosine:
            options["distance"] = distances.CosineSimilarity()
        loss = getattr(library, self.theirs)(**options)
        if self.miner is None:
            return loss
        miner = getattr(miners, self.miner[0])(**self.miner[1])
        return lambda embeddings, labels: loss(embeddings, labels, miner(embeddings, labels))


ENTRIES = [
    Entry("contrastive", "ContrastiveLoss", options={"pos_margin": 1, "neg_margin": 0.5}, cosine=True),
    Entry("triplet", "TripletMarginLoss", {"miner": None}, {"margin": 0.1}, cosine=True),
    Entry("n_pair", "NPairsLoss", {"form": "mc"}, images=2, differs=True),
    Entry("lifted_structure", "LiftedStructureLoss", differs=True),
    Entry("lifted_structure", "GeneralizedLiftedStructureLoss", {"form": "generalized"}, differs=True),
    Entry(
        "margin",
        "MarginLoss",
        {},
        {"learn_beta": True},
        ("DistanceWeightedMiner", {"cutoff": 0.5, "nonzero_loss_cutoff": 1.4}),
    ),
    Entry(
        "multi_similarity",
        "MultiSimilarityLoss",
        {},
        {"alpha": 2, "beta": 50, "base": 0.5},
        ("MultiSimilarityMiner", {"epsilon": 0.1}),
    ),
    Entry("ranked_list", "RankedListLoss", {}, {"margin": 0.4, "Tn": 10, "alpha": 1.2}, products=2, differs=True),
    Entry("histogram", "HistogramLoss", {}, {"n_bins": 100}),
    Entry("angular", "AngularLoss", {}, {"alpha": 45}, differs=True),
    Entry("circle", "CircleLoss", {}, {"m": 0.4, "gamma": 80}),
    Entry("supcon", "SupConLoss", {}, {"temperature": 0.1}),
    Entry("nt_xent", "NTXentLoss", {}, {"temperature": 0.1}, differs=True),
    Entry("smooth_ap", "SmoothAPLoss", {}, {"temperature": 0.01}, differs=True),
    Entry("softmax", "NormalizedSoftmaxLoss", {"normalized": True}, {"temperature": 0.05}),
    Entry("proxy_nca", "ProxyNCALoss", {}, {"softmax_scale": 9}, differs=True),
    Entry("arcface", "ArcFaceLoss", {}, {"margin": 28.6, "scale": 64}),
    Entry("cosface", "CosFaceLoss", {}, {"margin": 0.35, "scale": 64}),
    Entry("sub_center_arcface", "SubCenterArcFaceLoss", {}, {"margin": 28.6, "scale": 64, "sub_centers": 3}),
    Entry("soft_triple", "SoftTripleLoss", {}, {"centers_per_class": 10, "la": 20, "gamma": 0.1, "margin": 0.01}),
    Entry("proxy_anchor", "ProxyAnchorLoss", {}, {"margin": 0.1, "alpha": 32}),
    Entry("n_pair"),
    Entry("binomial_deviance"),
    Entry("nra"),
    Entry("recall_at_k"),
    Entry("proxy_repulsion"),
]


def batch(n: int, images: int = IMAGES) -> tuple[torch.Tensor, torch.Tensor]:
    """Clustered embeddings, so that miners find what they find in training: some positives far, some negatives near."""
    torch.manual_seed(0)
    labels = torch.arange(n) // images
    centers = torch.randn(n // images, DIM)
    return (torch.randn(n, DIM) + 0.7 * centers[labels]).requires_grad_(True), labels


def step(loss: Callable[..., torch.Tensor], embeddings: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    def run() -> None:
        loss(embeddings, labels).backward()
        embeddings.grad = None
        for parameter in getattr(loss, "parameters", list)():
            parameter.grad = None

    return run


def bare(entry: Entry, n: int) -> Callable[[], None]:
    """The matrix products the loss needs, in the engine's blocks, into memory that is there already."""
    embeddings = batch(n)[0].detach()
    if getattr(entry.make_ours(8), "form", None) == "mc":
        embeddings = embeddings[: n // 2]  # anchors against second elements
    proxies = torch.randn(n // IMAGES * getattr(entry.make_ours(n), "centers", 1), DIM) if entry.proxy else None
    rows, columns = embeddings, embeddings if proxies is None else proxies
    if entry.proxy and entry.make_ours(8).proxies_are_rows:
        rows, columns = columns, rows
    run = _products(rows, columns, entry.products)
    if entry.name != "proxy_repulsion":
        return run
    among = _products(rows, rows, 3)  # its second term: proxies against proxies

    def both() -> None:
        run()
        among()

    return both


def _products(rows: torch.Tensor, columns: torch.Tensor, number: int) -> Callable[[], None]:
    """Inner products, then the gradient of the rows, and with 3 that of the columns."""
    block = engine.block_rows(len(rows), len(columns), rows.device)
    buffer = torch.empty(block, len(columns))
    row_grad, column_grad = torch.zeros_like(rows), torch.zeros_like(columns)

    def run() -> None:
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            dot = torch.mm(part, columns.T, out=buffer[: len(part)])
            row_grad[start : start + block].addmm_(dot, columns)
            if number > 2:
                column_grad.addmm_(dot.T, part)

    return run


def measure_time(entry: Entry, n: int, who: str) -> dict[str, Any]:
    embeddings, labels = batch(n, entry.images)
    ours = step(entry.make_ours(n), embeddings, labels)
    repeats = 51 if n < 1000 else 21
    # Two rounds: what the other library allocates and gives back would slow the rest of a round, products and all.
    found = interleaved({BESIDE: ours, "products": bare(entry, n)}, repeats, seconds=8.0)
    others = {OTHER: step(entry.make_theirs(n), embeddings, labels)} if who == "both" else {}
    return found | interleaved({"nearkin": ours, **others}, repeats, seconds=6.0)


def measure_memory(entry: Entry, n: int, library: str) -> dict[str, int]:
    embeddings, labels = batch(n, entry.images)
    make = entry.make_ours if library == "nearkin" else entry.make_theirs
    run = step(make(n), embeddings, labels)
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
                "commit": commit(),
                "command": conditions()["command"],
                "milliseconds": None if isinstance(times, str) else times,
                "unfinished": reason,
            } | memory(number, n, patience)
            save([row])
            print(f"{line(row)}   ({time.perf_counter() - begin:.0f} s)", flush=True)


def memory(number: int, n: int, patience: float) -> dict[str, Any]:
    """Peak bytes of both libraries, each in a process of its own; a library that does not get there is left out."""
    found: dict[str, int] = {}
    both = ENTRIES[number].theirs is not None and n <= max(SIZES)
    for library in ("nearkin", OTHER) if both else ("nearkin",):
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


def median(row: dict[str, Any], who: str) -> float:
    return float(((row["milliseconds"] or {}).get(who) or {}).get("median", math.nan))


def line(row: dict[str, Any]) -> str:
    ours, theirs = median(row, "nearkin"), median(row, OTHER)
    memory = row["bytes"]
    mine, other = memory.get("nearkin", math.nan) / 2**20, memory.get(OTHER, math.nan) / 2**20
    return (
        f"{label(row):34s} n={row['n']:6d}  {ours:9.2f} ms  {theirs / ours:7.2f}x faster  "
        f"{over_products(row):5.2f}x products  {mine:8.1f} MiB against {other:8.1f}"
    )


def over_products(row: dict[str, Any]) -> float:
    """Our time over that of the bare matrix products, measured by turns."""
    return median(row, BESIDE) / median(row, "products")


def label(row: dict[str, Any]) -> str:
    return row["loss"] + "".join(f", {key}={value}" for key, value in row["settings"].items())


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The bars of the first issue, from the rows alone."""
    compared = [row for row in rows if not math.isnan(median(row, OTHER))]
    if not compared:
        return {}
    speedup = [median(row, OTHER) / median(row, "nearkin") for row in compared]
    large = [row for row in rows if row["n"] == 4096 and row["rowwise"]]
    products = {label(row): round(over_products(row), 2) for row in large}
    memory = {
        label(row): round(row["bytes"]["nearkin"] / row["bytes"][OTHER], 3) for row in large if OTHER in row["bytes"]
    }
    ranked = [row["bytes"]["nearkin"] / 2**20 for row in rows if row["n"] == ALONE and row["loss"] == "ranked_list"]
    return {
        "geometric mean of the speed-up": round(geometric_mean(speedup), 2),
        "smallest speed-up": round(min(speedup), 2),
        "slower than pytorch-metric-learning": [
            f"{label(r)} at {r['n']}" for r, s in zip(compared, speedup, strict=True) if s < 1
        ],
        "time over the bare matrix products at 4,096, row-wise losses": products,
        "memory over pytorch-metric-learning's at 4,096, row-wise losses": memory,
        "MiB of ranked_list at 16,384": [round(value) for value in ranked],
    }


def _origins(rows: list[dict[str, Any]], name: Callable[[dict[str, Any]], str]) -> str:
    """Where rows come from, and how many from each place."""
    counts = Counter(name(row) for row in rows)
    return "; ".join(f"{count} rows at {origin}" for origin, count in counts.items())


def _cell(value: float, digits: int = 2) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _way(memory: dict[str, Any]) -> str:
    return str(memory.get("way") or f"after a warm-up of {memory['warm_up']} rows")


def page(result: dict[str, Any]) -> None:
    """Fill the tables of docs/performance.md."""
    rows = result["rows"]
    found = result["summary"]
    where = result["conditions"]
    text = [
        f"Measured on {where['device']} ({where['threads']} threads), torch {where['versions']['torch']}, "
        f"pytorch-metric-learning {where['versions']['pytorch-metric-learning']}, {where['date']}. "
        "Rows come from several runs; the results file names the commit and command of each.",
        "",
        "Times: " + _origins(rows, lambda row: f"commit {row['commit']}") + ".",
        "",
        "Memory: " + _origins(rows, lambda row: f"commit {row['memory']['commit']}, {_way(row['memory'])}") + ".",
        "",
        f"Over all {sum(not math.isnan(median(r, 'pytorch-metric-learning')) for r in rows)} comparisons nearkin is "
        f"**{found['geometric mean of the speed-up']} times** faster in the geometric mean; the smallest factor is "
        f"{found['smallest speed-up']}. What the other library did not finish is not in that mean.",
        "",
        "| loss | n | nearkin, ms | theirs, ms | times faster | over bare products | nearkin, MiB | theirs, MiB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        ours, theirs = median(row, "nearkin"), median(row, OTHER)
        mine, other = row["bytes"].get("nearkin"), row["bytes"].get(OTHER)
        mark = " *" if row["differs"] else ""
        cells = [
            label(row) + mark,
            f"{row['n']:,}",
            _cell(ours),
            _cell(theirs) or row.get("unfinished") or "",
            _cell(theirs / ours, 2),
            _cell(over_products(row)),
            "" if mine is None else f"{mine / 2**20:.0f}",
            "" if other is None else f"{other / 2**20:.0f}",
        ]
        text.append(f"| {' | '.join(cells)} |")
    text += [
        "",
        "\\* the same name stands for another formula there: only time and memory are compared "
        "(see [coming from pytorch-metric-learning](from-pytorch-metric-learning.md)).",
    ]
    fill(ROOT / "docs" / "performance.md", "losses-cpu", "\n".join(text))
    if not found["MiB of ranked_list at 16,384"]:
        return
    fill(
        ROOT / "README.md",
        "speed",
        f"{found['geometric mean of the speed-up']} times faster than pytorch-metric-learning in the geometric mean of all "
        f"comparisons on a CPU, and ranked list loss of 16,384 samples in "
        f"{found['MiB of ranked_list at 16,384'][0]} MiB",
    )


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

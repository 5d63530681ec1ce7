"""Evaluation on a GPU up to a million vectors: time against the bare matrix product, memory, and pairs scored again.

    python benchmarks/million.py                       into benchmarks/results/evaluation-cuda.json
    python benchmarks/million.py --go-on               only what was not measured at this commit
    python benchmarks/million.py --rows 100000         one size, printed, not saved

Recall at 1, 10, 100, 1000, R-precision and MAP@R of everybody against everybody, 512 dimensions, about five images a class.
The noise is such that the nearest neighbour has the right class in 60 to 80 of 100 cases; k-means has 11,316 clusters.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch
from harness import RESULTS, Row, conditions, end, merged, rows_at_hand, write

from nearkin import evaluation
from nearkin.evaluation.layout import layout
from nearkin.evaluation.neighbours import MEMORY
from nearkin.evaluation.positives import all_positives
from nearkin.evaluation.queries import _depth
from nearkin.evaluation.screen import screened
from nearkin.evaluation.similarity import directions

DIM, KINDS, IMAGES, CLUSTERS = 512, 12, 5, 11_316
KS = (1, 10, 100, 1000)
SIZES = (1_000_000, 500_000, 250_000, 125_000, 62_500)
"""The one that tells most first."""
RESULT, KEYS = "evaluation-cuda.json", ("rows",)
MEASURES = ("recall", "r_precision", "map@r")


def data(rows: int, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(0)
    classes = rows // IMAGES
    labels = torch.randint(classes, (rows,), generator=generator, device="cuda")
    kinds = torch.randn(KINDS, DIM, generator=generator, device="cuda")
    centers = torch.randn(classes, DIM, generator=generator, device="cuda")
    centers += 0.7 * kinds[torch.arange(classes, device="cuda") % KINDS]
    vectors = torch.randn(rows, DIM, generator=generator, device="cuda").mul_(noise).add_(centers[labels])
    return torch.nn.functional.normalize(vectors), labels


def hard(rows: int) -> tuple[torch.Tensor, torch.Tensor, float, float]:
    """Data whose R@1, of some of the queries, lies between 0.6 and 0.8."""
    noise = 2.5
    for _ in range(12):
        vectors, labels = data(rows, noise)
        some = torch.arange(0, rows, max(1, rows // 2000))
        share = evaluation.per_query(vectors, labels, (1,), metrics="recall", rows=some).means()["recall@1"]
        if 0.65 < share < 0.75:
            return vectors, labels, noise, share
        noise *= 0.96 if share < 0.7 else 1.04
    raise RuntimeError(f"no noise gave a hard enough set of {rows} vectors; the last share was {share}")


def seconds(function: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """The least of some calls, and what the last one gave."""
    times, found = [], None
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        found = function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times), found


def bare(vectors: torch.Tensor) -> Callable[[], None]:
    """The matrix product of everybody with everybody in bfloat16, in blocks, into memory that is there already."""
    short = vectors.bfloat16()
    block = max(128, 2**30 // len(short))
    matrix = torch.empty(block, len(short), dtype=torch.bfloat16, device="cuda")

    def run() -> None:
        for begin in range(0, len(short), block):
            part = short[begin : begin + block]
            torch.mm(part, short.T, out=matrix[: len(part)])

    return run


def again(vectors: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of all pairs that had to be scored again."""
    every = torch.arange(len(vectors), device="cuda")
    rows, scored = layout(labels, every, every, own=True), directions(vectors)
    found = all_positives(scored, rows, rows.relevant <= 16)
    return screened(scored, rows, found, _depth(found, list(KS)), MEMORY).again / len(vectors) ** 2


def differing(vectors: torch.Tensor, labels: torch.Tensor, queries: int = 256) -> int:
    """Of some queries, how many get another result than by a whole ranking in float64, made here from definitions."""
    found = evaluation.per_query(vectors, labels, KS, metrics=MEASURES)
    fine = torch.nn.functional.normalize(vectors.double())
    wrong = 0
    for row in torch.linspace(0, len(fine) - 1, queries).long().tolist():
        cosine = (fine @ fine[row]).mul_(2**40).round_()
        cosine[row] = -torch.inf
        hit = labels[cosine.argsort(descending=True, stable=True)[: max(KS)]] == labels[row]
        relevant = int((labels == labels[row]).sum()) - 1
        if not relevant:
            continue
        first = hit[:relevant].double()
        precision = first.cumsum(0) / torch.arange(1, len(first) + 1, device=first.device)
        expected = {f"recall@{k}": float(hit[:k].any()) for k in KS}
        expected |= {"r_precision": float(first.mean()), "map@r": float((precision * first).mean())}
        wrong += any(abs(float(found.values[name][row]) - value) > 1e-12 for name, value in expected.items())
    return wrong


def measure(rows: int) -> dict[str, Any]:
    vectors, labels, noise, _ = hard(rows)
    product, _ = seconds(bare(vectors), 3)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    took, found = seconds(lambda: evaluation.evaluate(vectors, labels, KS, metrics=MEASURES), 3)
    memory = torch.cuda.max_memory_allocated() - before
    row = {"rows": rows, "noise": noise, "seconds": took, "product": product, "ratio": took / product, "bytes": memory}
    row |= {"values": found, "scored again": again(vectors, labels), "differing": differing(vectors, labels)}
    print(row, flush=True)
    return row


def clusters(rows: int) -> dict[str, Any]:
    vectors, _ = data(rows, 2.0)
    took, _ = seconds(lambda: evaluation.kmeans(vectors, min(CLUSTERS, rows // 8), seed=0), 1)
    row = {"rows": rows, "clusters": min(CLUSTERS, rows // 8), "seconds": took}
    print(row, flush=True)
    return row


PARTS: dict[str, tuple[Callable[[int], dict[str, Any]], tuple[int, ...]]] = {
    "retrieval": (measure, SIZES),
    "clustering": (clusters, SIZES[:1]),
}


def joined(before: dict[str, Any], now: dict[str, Any], new: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The result with new rows in the places of their like, the others as they were."""
    result: dict[str, Any] = {"conditions": now}
    for part in PARTS:
        old = {"conditions": before["conditions"], "rows": before[part]} if before else None
        rows = merged(old, {"conditions": now, "rows": new[part]}, KEYS)["rows"]
        result[part] = sorted(rows, key=lambda row: row["rows"])
    return result


def known(before: dict[str, Any], now: dict[str, Any], part: str) -> set[Row]:
    """The rows of a part that need not be measured again."""
    return set(rows_at_hand({**before, "rows": before[part]}, now, KEYS)) if before else set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--go-on", action="store_true", help="leave rows as they are that were measured at this commit")
    arguments = parser.parse_args()
    path = RESULTS / RESULT
    before = json.loads(path.read_text()) if path.exists() else {}
    now, failed = conditions(), []
    new: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    for part, (function, sizes) in PARTS.items():
        have = known(before, now, part) if arguments.go_on else set()
        for rows in arguments.rows or sizes:
            if (rows,) in have:
                continue
            try:
                new[part].append(function(rows))
            except Exception:  # the other sizes are still worth their time
                traceback.print_exc()
                failed.append(f"{part} of {rows:,}")
                continue
            if not arguments.rows:  # after each, so that what comes later cannot lose it
                write(RESULT, joined(before, now, new))
    end(failed, any(new.values()) or any(known(before, now, part) for part in PARTS))


if __name__ == "__main__":
    main()

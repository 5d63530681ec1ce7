"""Evaluation at the size of Stanford Online Products' test half, beside faiss and pytorch-metric-learning, in one run.

    python benchmarks/evaluation.py                   measure all into benchmarks/results/evaluation-cpu.json and docs/
    python benchmarks/evaluation.py --only recall     some parts; their rows replace those of the results file
    python benchmarks/evaluation.py --size 0.1        a tenth of the vectors and classes, printed, not saved
    python benchmarks/evaluation.py --page            only rebuild the page from the saved results

The data are made: class centers around twelve kinds of product, and noise around the centers such that the nearest
neighbour has the right class in 60 to 80 of 100 cases. The libraries take turns, each call in a process of its own:
threads of one library, waiting for more work, would slow down the other. Memory is what the call adds at its peak to a
process that holds the vectors.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from harness import RESULTS, ROOT, commit, conditions, fill, peak_memory, write

from nearkin import evaluation

ROWS, CLASSES, DIM, KINDS, NOISE = 60_502, 11_316, 512, 12, 2.5
KS = (1, 10, 100, 1000)
RESULT = "evaluation-cpu.json"
PAGE = ROOT / "docs" / "evaluation.md"
GIB = 2**30


def data(size: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors and labels; every class has two or more images, 5.3 on average."""
    rows, classes = int(ROWS * size), int(CLASSES * size)
    generator = torch.Generator().manual_seed(0)
    more = torch.randint(classes, (rows - 2 * classes,), generator=generator)
    labels = torch.cat([torch.arange(classes).repeat(2), more])[torch.randperm(rows, generator=generator)]
    kinds = torch.randn(KINDS, DIM, generator=generator)
    centers = torch.randn(classes, DIM, generator=generator) + 0.7 * kinds[torch.arange(classes) % KINDS]
    vectors = torch.empty(rows, DIM).normal_(generator=generator).mul_(NOISE).add_(centers[labels])
    return torch.nn.functional.normalize(vectors), labels


def recall(vectors: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    return evaluation.evaluate(vectors, labels, KS, metrics=("recall",))


def faiss_search(vectors: torch.Tensor) -> Any:
    """The 1,001 nearest of each vector, itself among them: what recall at 1,000 is read off."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors.numpy())
    return index.search(vectors.numpy(), max(KS) + 1)[1]


def recall_of(index: Any, labels: torch.Tensor) -> dict[str, float]:
    """Recall at KS of the neighbours that faiss found."""
    found = torch.from_numpy(index)
    hit = (labels[found] == labels[:, None]) & (found != torch.arange(len(found))[:, None])
    # The vector itself stands first unless another is a copy of it.
    first = torch.where(hit.any(1), hit.int().argmax(1), len(found))
    return {f"recall@{k}": float((first <= k).double().mean()) for k in KS}


def retrieval(vectors: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    return evaluation.evaluate(vectors, labels, (1,), metrics=("recall", "r_precision", "map@r"))


def calculator(vectors: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """The same three measures by pytorch-metric-learning, which searches with faiss."""
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    names = {
        "precision_at_1": "recall@1",
        "r_precision": "r_precision",
        "mean_average_precision_at_r": "map@r",
    }
    measured = AccuracyCalculator(include=tuple(names), k="max_bin_count", device=torch.device("cpu"))
    found = measured.get_accuracy(vectors, labels)
    return {names[name]: float(value) for name, value in found.items()}


def every_retrieval(vectors: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    return evaluation.evaluate(vectors, labels, KS, metrics=evaluation.RETRIEVAL)


def clustering(vectors: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    return evaluation.evaluate(vectors, labels, metrics=("nmi", "f1"))


# What is measured: ours and, where there is one, the other library's; called with vectors and labels.
Job = Callable[[torch.Tensor, torch.Tensor], Any]
PARTS: dict[str, dict[str, Job]] = {
    "recall": {"nearkin": recall, "faiss": lambda vectors, labels: faiss_search(vectors)},
    "retrieval": {"nearkin": retrieval, "pytorch-metric-learning": calculator},
    "every_retrieval": {"nearkin": every_retrieval},
    "clustering": {"nearkin": clustering},
}
ROUNDS = 3


def ready(part: str, size: float, name: str) -> Callable[[], Any]:
    """The call to measure; libraries are loaded and threads are there."""
    vectors, labels = data(size)
    function = PARTS[part][name]
    function(*data(0.02))
    return lambda: function(vectors, labels)


def measure_time(part: str, size: float, name: str) -> dict[str, Any]:
    """Seconds of one call, and what it found."""
    call = ready(part, size, name)
    begin = time.perf_counter()
    found = call()
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "values": found if isinstance(found, dict) else recall_of(found, data(size)[1])}


def measure_memory(part: str, size: float, name: str) -> dict[str, int]:
    return {"memory": peak_memory(ready(part, size, name))}


def apart(*task: object) -> Any:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--task", *map(str, task)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def measure(parts: list[str], size: float, rounds: int) -> dict[str, Any]:
    rows = {}
    for part in parts:
        names = list(PARTS[part])
        found = [{name: apart("time", part, size, name) for name in names} for _ in range(rounds)]
        row: dict[str, Any] = {"seconds": {}, "memory": {}, "values": {}}
        for name in names:
            taken = [round(turn[name]["seconds"], 2) for turn in found]
            row["seconds"][name] = {
                "median": statistics.median(taken),
                "low": min(taken),
                "high": max(taken),
                "rounds": rounds,
            }
            row["memory"][name] = apart("memory", part, size, name)["memory"]
            row["values"][name] = found[0][name]["values"]
        row |= {"commit": commit(), "command": conditions()["command"]}
        rows[part] = row
        print(part, json.dumps(row), flush=True)
    return rows


def save(rows: dict[str, Any]) -> dict[str, Any]:
    """Put rows into the results file in place of those of the same name."""
    path = RESULTS / RESULT
    saved = json.loads(path.read_text())["rows"] if path.exists() else {}
    where = conditions()
    where["versions"]["faiss-cpu"] = importlib.metadata.version("faiss-cpu")
    every = {part: (saved | rows)[part] for part in PARTS if part in saved | rows}
    settings = {"rows": ROWS, "classes": CLASSES, "dim": DIM, "kinds": KINDS, "noise": NOISE, "ks": list(KS)}
    result = {"conditions": where, "data": settings, "rows": every}
    write(RESULT, result)
    return result


def page(result: dict[str, Any]) -> None:
    """Fill the table of docs/evaluation.md."""
    titles = {
        "recall": "recall at 1, 10, 100, 1000",
        "retrieval": "recall at 1, R-precision, MAP@R",
        "every_retrieval": "recall at 1, 10, 100, 1000, R-precision, MAP@R, mAP",
        "clustering": "NMI and F1: k-means with k = 11,316",
    }
    rows, where = result["rows"], result["conditions"]
    lines = ["| measures | library | seconds (low to high) | memory | found |", "|---|---|---:|---:|---|"]
    for part, row in rows.items():
        order = _shown(next(iter(row["values"].values())))  # one for all libraries
        for name, taken in row["seconds"].items():
            values = row["values"][name]
            found = ", ".join(f"{100 * values[key]:.2f}" for key in order if key in values)
            lines.append(
                f"| {titles[part]} | {name} | {taken['median']:.1f} ({taken['low']:.1f} to {taken['high']:.1f}) | "
                f"{row['memory'][name] / GIB:.2f} GiB | {found} |"
            )
    times = {part: {name: taken["median"] for name, taken in row["seconds"].items()} for part, row in rows.items()}
    lines.append("")
    if "recall" in times:
        ratio = times["recall"]["nearkin"] / times["recall"]["faiss"]
        lines.append(
            f"Recall up to 1,000 takes {ratio:.2f} times the time of faiss' exact search for 1,001 neighbours."
        )
    if "retrieval" in times:
        ratio = times["retrieval"]["nearkin"] / times["retrieval"]["pytorch-metric-learning"]
        lines.append(
            f"The three measures that both libraries have take {ratio:.2f} times the time of AccuracyCalculator."
        )
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    commits = ", ".join(dict.fromkeys(row["commit"] for row in rows.values()))
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(row["command"] for row in rows.values()))
    lines += [
        "",
        f"{result['data']['rows']:,} vectors of {result['data']['dim']} dimensions in {result['data']['classes']:,} "
        f"classes (made, noise {result['data']['noise']}). {where['device']}, {where['threads']} threads, Python "
        f"{where['python']}, {versions}. Commit {commits}, {commands}, {where['date']}.",
    ]
    fill(PAGE, "evaluation", "\n".join(lines))


def _shown(values: dict[str, float]) -> list[str]:
    return [name for name in values if name not in ("queries", "left_out")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure these parts")
    parser.add_argument("--size", type=float, default=1.0, help="share of the vectors and classes")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each library has its turn")
    parser.add_argument("--page", action="store_true", help="only rebuild the page")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        kind, part, size, *more = arguments.task
        function: Any = {"time": measure_time, "memory": measure_memory}[kind]
        print(json.dumps(function(part, float(size), *more)))
        return
    if arguments.page:
        page(json.loads((RESULTS / RESULT).read_text()))
        return
    for part in arguments.only or PARTS:
        rows = measure([part], arguments.size, arguments.rounds)
        if arguments.size == 1:  # after each part, so that what comes later cannot lose it
            page(save(rows))


if __name__ == "__main__":
    main()

"""What ``losses.py`` found, in a few figures and as the tables of docs/performance.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from batches import told
from harness import ROOT, fill

ALONE = 16_384
"""A batch that only nearkin is measured with."""

OTHER = "pytorch-metric-learning"
BESIDE = "nearkin, taking turns with products"
MATRIX = "bare matrix products"
"""Of memory: all inner products at once."""


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
    """What the rows say in a few figures."""
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
        told(rows),
        *([""] if told(rows) else []),
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

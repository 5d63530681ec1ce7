"""The figures of docs/performance.md, from the results files that are there.

python benchmarks/plots.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import RESULTS, ROOT

OTHER = "pytorch-metric-learning"
SHOWN = ("contrastive", "triplet", "multi_similarity", "ranked_list", "supcon", "proxy_anchor")
# Blue, orange and grey that stay apart for colour-blind eyes and on paper.
LOOKS: dict[str, dict[str, Any]] = {
    "nearkin": {"color": "#0072b2", "marker": "o", "linestyle": "-", "linewidth": 2},
    OTHER: {"color": "#d55e00", "marker": "s", "linestyle": "--", "linewidth": 1.6},
    "bare matrix products": {"color": "#777777", "marker": "", "linestyle": ":", "linewidth": 1.6},
}


def panels(
    series: dict[str, dict[str, list[tuple[float, float]]]],
    title: str,
    unit: str,
    path: Path,
    x_name: str = "batch size",
) -> None:
    """One small figure for each loss, all with the same axes: what grows how fast."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "nearkin"  # the same figure has the same bytes
    import matplotlib.pyplot as plt

    columns = 2 if len(series) == 4 else min(3, len(series))
    rows = -(-len(series) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.1 * columns, 2.5 * rows + 0.5), sharex=True, sharey=True, squeeze=False
    )
    for axis, (loss, lines) in zip(axes.flat, series.items(), strict=False):
        for name, points in lines.items():
            if points:
                axis.plot(*zip(*sorted(points), strict=True), label=name, markersize=4, **LOOKS[name])
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(loss, fontsize=10, loc="left")
        axis.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
        axis.tick_params(labelsize=8, colors="#444444")
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    for axis in list(axes.flat)[len(series) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel(x_name, fontsize=9)
    sizes = sorted({x for lines in series.values() for points in lines.values() for x, _ in points})
    shown = sizes if len(sizes) <= 5 else sizes[-1::-2][::-1]
    axes[0, 0].set_xticks(shown, [f"{int(size):,}" for size in shown], rotation=30, ha="right")
    axes[0, 0].minorticks_off()
    for row in axes:
        row[0].set_ylabel(unit, fontsize=9)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.suptitle(title, fontsize=11, x=0.01, ha="left", y=0.995)
    figure.legend(handles, labels, loc="upper right", ncols=3, fontsize=8, frameon=False, bbox_to_anchor=(1.0, 0.965))
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)
    print(path.relative_to(ROOT))


def losses_on_a_cpu() -> None:
    rows = json.loads((RESULTS / "losses-cpu.json").read_bytes())["rows"]
    chosen = [row for row in rows if row["loss"] in SHOWN and row["milliseconds"]]
    folder = ROOT / "docs" / "figures"
    folder.mkdir(exist_ok=True)

    def gathered(value: Callable[[dict[str, Any], str], float | None], names: tuple[str, ...]) -> Any:
        found: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for row in chosen:
            lines = found.setdefault(row["loss"], {name: [] for name in names})
            for name in names:
                got = value(row, name)
                if got:
                    lines[name].append((row["n"], got))
        return found

    def time(row: dict[str, Any], name: str) -> float | None:
        key = "products" if name == "bare matrix products" else name
        return (row["milliseconds"].get(key) or {}).get("median")

    def memory(row: dict[str, Any], name: str) -> float | None:
        got = row["bytes"].get(name)
        return got / 2**20 if got else None

    panels(
        gathered(time, tuple(LOOKS)),
        "Forward and backward, 512 dimensions, 2 cores",
        "milliseconds",
        folder / "losses-cpu-time.svg",
    )
    panels(gathered(memory, tuple(LOOKS)), "Memory above the inputs", "MiB", folder / "losses-cpu-memory.svg")


def main() -> None:
    losses_on_a_cpu()


if __name__ == "__main__":
    main()

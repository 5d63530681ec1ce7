"""What a second look at search results is worth: query expansion and reciprocal neighbours on a trained run's test images.

    nearkin train ... --keep-embeddings --out runs/x
    python benchmarks/rerank.py runs/x [runs/y ...]     into benchmarks/results/rerank.json and docs/index.md

Every test image asks all others, as `nearkin index search --again` does it. Runs keep vectors in 16 bits, so what is
measured without a second look may differ from the run's own measures by near ties; more than that is an error.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from harness import ROOT, conditions, fill, write
from safetensors.numpy import load

from nearkin.index.index import AMONG
from nearkin.index.rerank import expand, reciprocal
from nearkin.results import QUERIES
from nearkin.train import epochs

NEEDED = 100
"""Places that are looked at: at least the relevant images of any query."""
NEAR_TIES = 1e-3
"""Share of the queries whose answer may differ because vectors were kept in 16 bits."""


def ranked(vectors: np.ndarray[Any, Any], row: int, again: str) -> np.ndarray[Any, Any]:
    """Rows in the order in which they are found for one of them, itself left out."""
    query = vectors[row : row + 1]
    similarity = (query @ vectors.T)[0]
    similarity[row] = -np.inf
    first = np.argsort(-similarity, kind="stable")
    if again == "expansion":
        similarity = (expand(query, vectors[first[:10]]) @ vectors.T)[0]
        similarity[row] = -np.inf
        return np.argsort(-similarity, kind="stable")
    if again == "reciprocal":
        some = first[: max(AMONG, NEEDED)]
        order = np.argsort(reciprocal(np.concatenate([query, vectors[some]]), 1)[0, 1:], kind="stable")
        return np.concatenate([some[order], first[len(some) :]])
    return first


def measured(vectors: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], again: str) -> dict[str, float]:
    found = []
    for row in range(len(vectors)):
        relevant = int((labels == labels[row]).sum()) - 1
        hit = labels[ranked(vectors, row, again)[:NEEDED]] == labels[row]
        places = np.flatnonzero(hit[:relevant]) + 1
        precision = (np.arange(1, len(places) + 1) / places).sum() / relevant
        found.append([hit[0], hit[:2].any(), hit[:4].any(), hit[:8].any(), precision])
    names = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r")
    return dict(zip(names, np.mean(found, 0).tolist(), strict=True))


def measure(run: Path) -> dict[str, Any]:
    last = epochs.kept(run)[-1]
    vectors = last.vectors()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    answers = load((run / QUERIES).read_bytes())
    labels = np.empty(len(vectors), np.int64)
    labels[answers["rows"]] = answers["labels"]
    settings = tomllib.loads((run / "config.toml").read_text())
    row: dict[str, Any] = {name: settings[name] for name in ("data", "recipe", "network", "loss", "seed")}
    row |= {"epoch": last.moment.epoch + 1, "images": len(vectors)}
    for again in ("none", "expansion", "reciprocal"):
        row[again] = measured(vectors, labels, again)
        print(row["loss"], again, {name: round(100 * value, 1) for name, value in row[again].items()}, flush=True)
    own = json.loads((run / "metrics.json").read_bytes())
    row["run"] = {name: own[name] for name in row["none"]}
    for name, value in row["run"].items():
        if abs(row["none"][name] - value) > NEAR_TIES:
            raise SystemExit(f"{run.name} measured {name} {value:.4f} itself, its vectors give {row['none'][name]:.4f}")
    return row


def page(content: dict[str, Any]) -> None:
    """Write the table of the results between the marks of docs/index.md."""
    lines = [
        "| data | recipe | second look | R@1 | R@2 | R@4 | R@8 | MAP@R |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in content["rows"]:
        for again in ("none", "expansion", "reciprocal"):
            cells = [f"{100 * value:.1f}" for value in row[again].values()]
            lines.append(f"| {row['data']} | {row['recipe']} | {again} | {' | '.join(cells)} |")
    lines.append("")
    for row in content["rows"]:
        lines.append(
            f"{row['data']}, {row['recipe']}: {row['images']:,} test images, {row['network']}, epoch {row['epoch']}, "
            f"one seed; vectors kept in 16 bits (the run itself measured R@1 {100 * row['run']['recall@1']:.1f} in 32)."
        )
    lines.append(f"Commit {content['conditions']['commit']}, `{content['conditions']['command']}`.")
    fill(ROOT / "docs" / "index.md", "rerank", "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="folders of runs that kept their embeddings")
    runs = [Path(run) for run in parser.parse_args().runs]
    where = conditions() | {  # wherever they lie
        "command": " ".join(["python benchmarks/rerank.py", *(f"runs/{run.resolve().name}" for run in runs)])
    }
    content = {"conditions": where, "rows": [measure(run) for run in runs]}
    print("saved", write("rerank.json", content))
    page(content)


if __name__ == "__main__":
    main()

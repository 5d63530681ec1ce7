"""Which optimiser and which batch serve which loss in the plane: mAP on training images kept back, never on test images.

python benchmarks/plane_optimizer.py MNIST     writes benchmarks/results/plane-optimizer.json

The first 55,000 training images of MNIST train, the last 5,000 are measured. NRA has two seeds, because much of what it
gives is chance; one is enough for the others. Trials that are in the file already are kept.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from typing import Any

import numpy as np
import torch
from harness import RESULTS, ROOT, conditions, fill, write
from torch import Tensor

from nearkin import data, losses, models
from nearkin.plane.precision import rank
from nearkin.plane.runs import BATCH, LOSSES

STEPS, KEPT = 1500, 5000
OPTIMIZERS = (("adam", 1e-3), ("sgd", 1e-2), ("sgd", 1e-3))
FOUR = ("softmax", "triplet", "lifted_structure", "nra")
# loss, digits in a batch of 80, optimiser, rate; then the seed
NAMES = ("loss", "classes", "optimizer", "lr", "seed")
ONE = [(name, 10, *pair) for name in FOUR for pair in OPTIMIZERS]
ONE += [(name, 4, "adam", 1e-3) for name in FOUR]
ONE += [
    ("nra", 4, "sgd", 1e-3),
    ("nra", 2, "sgd", 1e-3),
    ("nra_slack", 10, "sgd", 1e-3),
    ("nra_slack", 4, "sgd", 1e-3),
]
TRIALS = [(*trial, seed) for seed in range(2) for trial in ONE if seed == 0 or trial[0] == "nra"]


def main() -> None:
    torch.set_num_threads(1)
    where = conditions() | {"command": "python benchmarks/plane_optimizer.py MNIST", "threads": 1}
    table = data.load("mnist", sys.argv[1]).train
    images, labels = torch.from_numpy(np.array(table.images))[:, None] / 255, torch.from_numpy(np.array(table.labels))
    path = RESULTS / "plane-optimizer.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    for trial in TRIALS:
        if trial in [tuple(row[name] for name in NAMES) for row in rows]:
            continue
        begin = time.perf_counter()
        found = score(images, labels, *trial)
        rows.append({**dict(zip(NAMES, trial, strict=True)), "map": found})
        shown = "diverged" if found is None else f"{100 * found:.1f}"
        print(*trial, shown, f"{time.perf_counter() - begin:.0f} s", flush=True)
        write(path.name, {"conditions": where, "steps": STEPS, "kept": KEPT, "rows": rows})
    fill(ROOT / "docs" / "plane.md", "plane-optimizer", page(rows))


def page(rows: list[dict[str, Any]]) -> str:
    """The table of the page: a column for each optimiser and batch, means over the seeds."""
    columns = dict.fromkeys(tuple(row[name] for name in NAMES[1:4]) for row in rows)
    heads = [f"{optimizer} {lr:g}, {classes} digits" for classes, optimizer, lr in columns]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for loss in dict.fromkeys(row["loss"] for row in rows):
        cells = []
        for column in columns:
            found = [row["map"] for row in rows if tuple(row[name] for name in NAMES[:4]) == (loss, *column)]
            cells.append("" if not found else "diverged" if None in found else f"{100 * statistics.fmean(found):.1f}")
        lines.append(f"| `{loss}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def score(
    images: Tensor, labels: Tensor, name: str, classes: int, optimizer: str, lr: float, seed: int
) -> float | None:
    """mAP of the images kept back, None where the loss leaves the numbers."""
    model, variant = models.create("digits", dim=2, seed=seed), LOSSES[name]
    torch.manual_seed(seed)
    own = {"classes": 10, "dim": 2} if variant.loss == "softmax" else {}
    loss = losses.create(variant.loss, **own, **variant.settings)
    learned = [*model.parameters(), *loss.parameters()]
    optimiser: torch.optim.Optimizer = (
        torch.optim.SGD(learned, lr=lr, momentum=0.9) if optimizer == "sgd" else torch.optim.Adam(learned, lr=lr)
    )
    members = [(labels[:-KEPT] == digit).nonzero()[:, 0] for digit in range(10)]
    generator = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        chosen = torch.randperm(10, generator=generator)[:classes].tolist()
        draws = [torch.randint(len(members[digit]), (BATCH // classes,), generator=generator) for digit in chosen]
        batch = torch.cat([members[digit][draw] for digit, draw in zip(chosen, draws, strict=True)])
        optimiser.zero_grad()
        value = loss(model(images[batch])["stage2"], labels[batch])
        if not math.isfinite(value.item()):
            return None
        value.backward()
        optimiser.step()
    with torch.no_grad():
        points = model(images[-KEPT:])["stage2"]
    return rank(points, labels[-KEPT:]).mean if bool(points.isfinite().all()) else None


if __name__ == "__main__":
    main()

"""Results of benchmarks that never ran, with answers to queries drawn at random."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from nearkin import results
from nearkin.results import Result


def scores_of(
    rng: np.random.Generator,
    levels: Sequence[float],
    seeds: int,
    classes: int,
    per_class: int = 20,
    *,
    between: float = 0.5,
    training: float = 0.0,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """0 or 1 for each query, (losses, seeds, queries), and labels: classes differ in difficulty, runs in luck.

    ``levels`` are log-odds of a right answer; ``between`` and ``training`` deviations of classes and runs.
    """
    labels = np.repeat(np.arange(classes), per_class)
    hard = between * rng.standard_normal(classes)
    luck = training * rng.standard_normal((len(levels), seeds, 1))
    odds = np.array(levels)[:, None, None] + luck + hard[labels]
    right = rng.random((len(levels), seeds, len(labels))) < 1 / (1 + np.exp(-odds))
    return right.astype(np.float64), labels


def result(label: str, seed: int = 0, **changes: Any) -> Result:
    """A result; its id tells label, experiment, fold and seed."""
    plain = Result("", "done", label, label, "cub200", "resnet50", 512, "fixed_validation", 0, seed, {"recall@1": 0.5})
    made = replace(plain, **changes)
    parts = (made.label, *made.experiment, made.fold, made.seed)
    return made if made.id else replace(made, id="-".join(map(str, parts)), folder="/".join(map(str, ("runs", *parts))))


def keep(
    folder: Path, run: Result, scores: NDArray[np.float64], labels: NDArray[np.int64], /, **changes: Any
) -> Result:
    """Write the answers of a run; the result with the mean over them."""
    target = folder / run.folder
    target.mkdir(parents=True, exist_ok=True)
    columns = {"rows": np.arange(len(labels)), "labels": labels, "recall@1": scores.astype(np.float32)} | changes
    names = json.dumps([f"class {label}" for label in range(int(labels.max()) + 1)])
    save_file(
        {key: np.ascontiguousarray(value) for key, value in columns.items()},
        target / results.QUERIES,
        {"class_names": names},
    )
    return replace(run, metrics={"recall@1": float(np.nanmean(scores)), "nmi": 0.5 + 0.1 * float(np.nanmean(scores))})


def asked(folder: Path, *runs: Result) -> None:
    """Leave beside the results which runs the grid asks for, as a benchmark does."""
    names = ("id", "loss", "label", "data", "network", "dim", "protocol", "fold", "seed")
    grid = [{name: getattr(run, name) for name in names} for run in runs]
    (folder / results.CURRENT).write_text(json.dumps(grid))


def benchmark(
    folder: Path,
    levels: Mapping[str, float],
    *,
    seeds: int = 3,
    classes: int = 40,
    training: float = 0.05,
    rng: int = 0,
    **changes: Any,
) -> list[Result]:
    """One experiment: every loss with every seed, answers and all, added to the results in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    scores, labels = scores_of(np.random.default_rng(rng), list(levels.values()), seeds, classes, training=training)
    made = []
    for row, label in zip(scores, levels, strict=True):
        for seed, answers in enumerate(row):
            made.append(keep(folder, result(label, seed, **changes), answers, labels))
            results.append(folder / results.FILE, made[-1])
    return made

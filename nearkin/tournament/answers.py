"""What each query of each run got, added up by test class; only runs that were asked the same queries are put together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin import results as files
from nearkin.results import Result

# The mean over the queries and the number in the results may differ by rounding, not by more.
ROUNDING = 5e-4


@dataclass(frozen=True)
class Answers:
    """``sums`` (losses, runs, classes) of a measure over the queries of each class; ``sizes`` (classes,): how many.

    ``marks``: for each run of each loss, what only a run with the same answer to every query has too.
    """

    sums: NDArray[np.float64]
    sizes: NDArray[np.float64]
    marks: tuple[tuple[bytes, ...], ...]

    @property
    def queries(self) -> int:
        return int(self.sizes.sum())

    @property
    def classes(self) -> int:
        return len(self.sizes)


def gather(folder: Path, runs: Sequence[Sequence[Result]], metric: str) -> Answers | str:
    """The answers of ``runs`` (a list of equally many for each loss), or a few words that say why there are none.

    Runs with other queries or other labels than the first are an error: their scores are about different questions.
    """
    first: tuple[Result, NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]] | None = None
    sums: list[list[NDArray[np.float64]]] = []
    marks: list[list[bytes]] = []
    sizes, numbers = np.empty(0), np.empty(0, np.int64)
    for row in runs:
        sums.append([])
        marks.append([])
        for run in row:
            found = files.queries(folder, run)
            if not found:
                return f"{name(run)} kept no {files.QUERIES}"
            if metric not in found:
                return f"{metric} is a number of the whole test set, not of each query"
            rows, labels, scores = _read(run, found, metric)
            counted = np.isfinite(scores)  # a query without a relevant item has no score
            if first is None:
                first = run, rows, labels, counted
                present, inverse = np.unique(labels[counted], return_inverse=True)
                numbers = np.asarray(inverse, np.int64)
                sizes = np.bincount(numbers, minlength=len(present)).astype(np.float64)
            _same(first, run, rows, labels, counted)
            _fits(run, float(scores[counted].mean()), metric)
            added = np.bincount(numbers, weights=scores[counted], minlength=len(sizes))
            sums[-1].append(np.asarray(added, np.float64))
            marks[-1].append(hashlib.sha256(scores[counted].tobytes()).digest())
    return Answers(np.array(sums), sizes, tuple(map(tuple, marks)))


def name(run: Result) -> str:
    """What to call a run in a sentence."""
    return f"run {run.id} ({run.label}, {part(run.fold, run.seed)})"


def part(fold: int, seed: int) -> str:
    """What to call a fold and seed: "seed 0", and the fold where it is not the first."""
    return f"fold {fold}, seed {seed}" if fold else f"seed {seed}"


def _read(
    run: Result, found: dict[str, Any], metric: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    try:
        rows, labels = np.asarray(found["rows"], np.int64), np.asarray(found["labels"], np.int64)
    except KeyError as error:
        raise ValueError(
            f"{files.QUERIES} of {name(run)} must hold rows and labels, got no {error}; run it again."
        ) from None
    scores = np.asarray(found[metric], np.float64)
    if not rows.shape == labels.shape == scores.shape or rows.ndim != 1 or not np.isfinite(scores).any():
        raise ValueError(
            f"{files.QUERIES} of {name(run)} must hold one row, label and score per query, got shapes {rows.shape}, "
            f"{labels.shape} and {scores.shape}; run it again."
        )
    order = np.argsort(rows, kind="stable")
    return rows[order], labels[order], scores[order]


def _same(
    first: tuple[Result, NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]],
    run: Result,
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    counted: NDArray[np.bool_],
) -> None:
    other, its_rows, its_labels, its_counted = first
    if np.array_equal(rows, its_rows) and np.array_equal(labels, its_labels) and np.array_equal(counted, its_counted):
        return
    if len(rows) != len(its_rows):
        what = f"{len(its_rows):,} and {len(rows):,} queries"
    elif not np.array_equal(rows, its_rows):
        what = "different queries"
    else:
        what = "other labels for the same queries"
    raise ValueError(
        f"{run.data}: runs to be compared must have been asked the same queries, got {what} from {name(other)} and "
        f"{name(run)}; test both on the same test set, or keep them in separate results."
    )


def _fits(run: Result, mean: float, metric: str) -> None:
    if abs(mean - run.metrics[metric]) > ROUNDING:
        raise ValueError(
            f"{files.QUERIES} of {name(run)} must give the {metric} of its result, {run.metrics[metric]:.4f}, got "
            f"{mean:.4f}; the file belongs to another epoch: run it again."
        )

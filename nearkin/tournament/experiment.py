"""One experiment: losses that share data set, network, size of embedding and protocol, compared on the same runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearkin.results import MISSING, Result
from nearkin.tournament import luck
from nearkin.tournament.answers import Answers, gather, part
from nearkin.tournament.blocks import complete
from nearkin.tournament.intervals import Intervals, bootstrap, difference_p
from nearkin.tournament.luck import Part
from nearkin.tournament.permutation import FLIPS, LEVEL, holm_pairs, is_exact, sign_flip

TEST_FEEDBACK = "test_feedback"
NOT_YET = "not run yet"


@dataclass(frozen=True)
class Comparison:
    """What the answers to the queries say.

    - ``intervals`` over classes and runs;
    - ``queries_p`` (k, k): paired permutation tests on the same queries. They say whether these trained networks differ, and
      know nothing of luck in training;
    - ``runs_p`` (k, k): where there are several runs, whether the difference is more than that luck; else None;
    - ``p`` (k, k): the larger of both, corrected by Holm for the number of pairs; ``apart``: where it is below 0.05;
    - ``flips``: how many random patterns of signs the permutation tests drew; 0 where they went through all.
    """

    intervals: Intervals
    queries_p: NDArray[np.float64]
    runs_p: NDArray[np.float64] | None
    p: NDArray[np.float64]
    apart: NDArray[np.bool_]
    queries: int
    classes: int
    flips: int

    @property
    def least(self) -> float:
        """The least p that random patterns of signs can show when corrected; 0 where all patterns were gone through."""
        return len(self.p) * (len(self.p) - 1) / 2 / (self.flips + 1) if self.flips else 0.0


@dataclass(frozen=True)
class Experiment:
    """Scores of k losses, higher is better, as a share of 1.

    - ``scores`` (k,): means over ``parts`` (folds and seeds), the same for every loss; ``spread``: their sample standard
      deviation, not a number with one;
    - ``comparison``: None where there are no answers to queries; ``reason`` says why;
    - ``holes``: sentences that name what failed or is missing, and what was left out for it;
    - ``copies``: losses of which every seed gave the same answer to each query, as one network does that was entered under
      several seeds;
    - ``finished``: losses with a finished run, those that were left out among them.
    """

    data: str
    network: str
    dim: int
    protocol: str
    labels: tuple[str, ...]
    scores: NDArray[np.float64]
    spread: NDArray[np.float64]
    parts: tuple[Part, ...] = ((0, 0),)
    comparison: Comparison | None = None
    reason: str = ""
    holes: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Data set, network, size; and the protocol, since a number means little without it."""
        return ", ".join(filter(None, (self.data, self.network, f"{self.dim} dimensions", self.protocol)))

    @property
    def repeats(self) -> int:
        """How often each loss was trained with luck of its own: folds of one seed share it, copies have none."""
        return 1 if self.copied else luck.repeats(self.parts)

    @property
    def copied(self) -> bool:
        """Whether every loss is one network under several seeds."""
        return bool(self.copies) and set(self.copies) == set(self.labels)

    @property
    def order(self) -> list[int]:
        """Places of the losses, the best first; equals in the order in which they came."""
        return [int(place) for place in np.argsort(-np.round(self.scores, 9), kind="stable")]


def experiments(
    results: Iterable[Result], folder: str | Path, metric: str = "recall@1", *, seed: int = 0
) -> list[Experiment]:
    """Every experiment in the results of a benchmark; runs lie in ``folder``."""
    tables: dict[tuple[str, str, int, str], list[Result]] = {}
    for result in results:
        tables.setdefault(result.experiment, []).append(result)
    return [_experiment(runs, Path(folder), metric, seed) for runs in tables.values()]


def compare(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    paired: bool = False,
    level: float = LEVEL,
    seed: int = 0,
) -> Comparison:
    """Compare losses by ``sums`` (losses, runs, classes) of scores over the ``sizes`` (classes,) queries of each class.

    ``paired``: the runs are folds; those of different losses belong together one by one.
    """
    intervals = bootstrap(sums, sizes, paired=paired, coverage=1 - level, seed=seed)
    # Random flips must be able to give a p-value that stays small when corrected for all pairs.
    flips = max(FLIPS, 25 * len(sums) * (len(sums) - 1))
    queries_p = sign_flip(sums.mean(1), flips=flips, seed=seed)
    runs_p = difference_p(sums, sizes, paired) if sums.shape[1] > 1 else None
    p = holm_pairs(queries_p if runs_p is None else np.maximum(queries_p, runs_p))
    return Comparison(
        intervals,
        queries_p,
        runs_p,
        p,
        p < level,
        int(sizes.sum()),
        len(sizes),
        0 if is_exact(len(sizes), flips) else flips,
    )


def _experiment(runs: Sequence[Result], folder: Path, metric: str, seed: int) -> Experiment:
    held: dict[str, dict[Part, Result]] = {}
    failed: dict[tuple[str, Part], str] = {}
    for run in runs:
        place = held.setdefault(run.label, {})
        key = (run.fold, run.seed)
        score = run.metrics.get(metric)
        if run.status == MISSING:
            failed[run.label, key] = NOT_YET
        elif not run.done:
            failed[run.label, key] = (
                f"failed: {run.error.strip().splitlines()[0].rstrip('.') if run.error.strip() else 'no reason given'}"
            )
        elif score is None or not math.isfinite(score):
            failed[run.label, key] = f"has no {metric}" if score is None else f"has {score} as {metric}"
        elif key in place:
            raise ValueError(
                f"{_title(run)}: a loss must have one run for each fold and seed, got {place[key].id} and {run.id} for "
                f"{run.label}, {part(*key)}; keep them in separate results or give them labels of their own."
            )
        else:
            place[key] = run
    block = complete({label: tuple(found) for label, found in held.items() if found})
    parts = luck.crossed(block.columns)
    holes = _holes(_title(runs[0]), held, failed, block.rows, block.columns, parts)
    chosen = [[held[label][key] for key in parts] for label in block.rows]
    values = np.array([[run.metrics[metric] for run in row] for row in chosen]).reshape(len(chosen), len(parts))
    several = values.shape[1] > 1
    spread = values.std(1, ddof=1) if several else np.full(len(values), np.nan)
    answers = gather(folder, chosen, metric) if len(chosen) > 1 else ""
    comparison, reason = None, ""
    copies: tuple[str, ...] = ()
    if isinstance(answers, str):
        reason = answers
    elif answers.classes < 2:
        reason = "the test set has one class only"
    else:
        sums, paired = luck.by_seed(answers.sums, parts)
        comparison = compare(sums, answers.sizes, paired=paired, seed=seed)
        copies = _copies(block.rows, parts, answers)
    data, network, dim, protocol = runs[0].experiment
    means = values.mean(1) if values.size else np.empty(0)
    finished = tuple(label for label, found in held.items() if found)
    return Experiment(
        data, network, dim, protocol, block.rows, means, spread, parts, comparison, reason, holes, copies, finished
    )  # fmt: skip


def _copies(labels: Sequence[str], parts: Sequence[Part], answers: Answers) -> tuple[str, ...]:
    """The losses whose seeds say nothing of luck, where there are several.

    Answers that are all right, or all wrong, tell no networks apart: on an easy test set any network has them.
    """
    if luck.repeats(parts) == 1:
        return ()
    told = [bool((sums != 0).any() and (sums != answers.sizes).any()) for sums in answers.sums]
    rows = zip(labels, answers.marks, told, strict=True)
    return tuple(label for label, own, differ in rows if differ and luck.own_answers(parts, own) == 1)


def _title(run: Result) -> str:
    return Experiment(*run.experiment, (), np.empty(0), np.empty(0)).name


def _holes(
    title: str,
    held: dict[str, dict[Part, Result]],
    failed: dict[tuple[str, Part], str],
    rows: tuple[str, ...],
    columns: tuple[Part, ...],
    parts: tuple[Part, ...],
) -> tuple[str, ...]:
    """One sentence for each loss with a hole, one for what the others lost by it, one for what folds lost to each other."""
    known = sorted({key for found in held.values() for key in found} | {key for _, key in failed})
    found = []
    for label, runs in held.items():
        lacking = [key for key in known if key not in runs]
        if not lacking and label in rows:
            continue
        told = [f"{part(*key)} {failed.get((label, key), 'is missing')}" for key in lacking]
        out = "" if label in rows else ", so it is left out here"
        found.append(f"{title}: {label}: {'; '.join(told) or 'shares no run with the others'}{out}.")
    unused = [key for key in known if key not in columns and any(key in held[label] for label in rows)]
    if unused and rows:
        left = ", ".join(part(*key) for key in unused)
        found.append(f"{title}: {left} left out for every loss, since not all of them have it.")
    odd = [key for key in columns if key not in parts]
    if odd:
        left = ", ".join(part(*key) for key in odd)
        found.append(f"{title}: {left} left out for every loss, since not every fold has the same seeds.")
    return tuple(found)

"""What a report is made from: the results of a benchmark, the verdict of the tournament, and the folders of the runs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nearkin import results as files
from nearkin import tournament
from nearkin.records import measured, records
from nearkin.report.names import readable
from nearkin.report.palette import Style, style
from nearkin.results import Result
from nearkin.tournament import Experiment, Verdict
from nearkin.tournament.unfinished import unfinished, warned

TEST_FEEDBACK = "test_feedback"


@dataclass(frozen=True)
class Bench:
    """Everything that was read.

    - ``verdict``: None where there is nothing to compare, and ``why`` says so;
    - ``tables``: every experiment; those of the verdict first;
    - ``pictures``: whether images may be shown; ``queries``: of how many queries; ``points`` of the map of the embedding;
    - ``lender``: another benchmark, whose images are shown instead of its own, which may not be passed on;
    - ``cache``: where what takes long to compute is kept; ``remarks`` on how the results were read.
    """

    folder: Path
    results: tuple[Result, ...]
    metric: str
    verdict: Verdict | None
    why: str
    tables: tuple[Experiment, ...]
    pictures: bool = True
    queries: int = 8
    points: int = 1500
    lender: Bench | None = None
    cache: Path | None = None
    remarks: tuple[str, ...] = ()
    looks: dict[str, Style] = field(default_factory=dict)

    def look(self, label: str) -> Style:
        """The look of a loss, the same in every figure."""
        return self.looks[label]

    @property
    def begun(self) -> list[Result]:
        """The runs that have come to something, be it a failure: of the others no settings and no machine are known."""
        return [result for result in self.results if result.status != files.MISSING]

    def runs(self, table: Experiment) -> list[Result]:
        """Every run of an experiment, failed ones and those that are missing too."""
        wanted = (table.data, table.network, table.dim, table.protocol)
        return [result for result in self.results if result.experiment == wanted]

    def counted(self, table: Experiment, label: str) -> list[Result]:
        """The runs that the mean of a loss is made of, in the order of ``table.parts``."""
        if label not in table.labels:
            return []
        found = {(run.fold, run.seed): run for run in self.runs(table) if run.label == label and run.done}
        return [found[part] for part in table.parts]

    def path(self, run: Result) -> Path:
        return self.folder / run.folder

    def log(self, run: Result, kind: str) -> list[dict[str, Any]]:
        """The lines of one kind in a run's log; of its audit for "audit"; for "evaluate" with the end of its curve."""
        name = "audit.jsonl" if kind == "audit" else "log.jsonl"
        return measured(records(self.path(run) / name), kind)

    def similarities(self, run: Result) -> dict[str, list[float]] | None:
        """The histograms of pairs of a run, if it kept them."""
        path = self.path(run) / files.SIMILARITIES
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_bytes())
            found: dict[str, list[float]] = {key: kept[key] for key in ("edges", "positive", "negative")}
            sizes = [len(entry) for entry in found.values()]
            if not sizes[0] - 1 == sizes[1] == sizes[2]:
                raise ValueError(f"{sizes[0]} edges for {sizes[1]} and {sizes[2]} steps")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} must hold the histograms of pairs of a run, got a file that cannot be read ({error}); restore it, "
                f"or remove it to do without them."
            ) from error
        return found

    def answers(self, run: Result) -> dict[str, Any]:
        """What each query of a run got, classes by readable names; empty where it kept no such file."""
        found = files.queries(self.folder, run)
        return found | {"class_names": readable(found["class_names"])} if found else {}

    def shown(self) -> list[Experiment]:
        """One experiment for each data set, to look at closely: of those judged, with most losses, the one with the best
        score."""
        best: dict[str, Experiment] = {}
        for table in self.tables:
            if not table.labels:
                continue
            before = best.get(table.data)
            if before is None or self._weight(table) > self._weight(before):
                best[table.data] = table
        return list(best.values())

    def _weight(self, table: Experiment) -> tuple[bool, bool, int, float]:
        judged = self.verdict is not None and table.protocol == self.verdict.protocol
        return judged, table.protocol != TEST_FEEDBACK, len(table.labels), float(table.scores.max())


def winner(table: Experiment) -> str:
    """The loss with the best mean of an experiment."""
    return table.labels[table.order[0]]


def ordered(bench: Bench, labels: Sequence[str]) -> list[str]:
    """Losses as the verdict ranks them, the best first; those it knows nothing of as they came."""
    order = [entry.label for entry in bench.verdict.standings] if bench.verdict is not None else []
    return [label for label in order if label in labels] + [label for label in labels if label not in order]


def read(place: str | Path, metric: str = "recall@1", protocol: str = "", **wishes: Any) -> Bench:
    """Read a benchmark and let the tournament judge it, by the protocol asked for or the most careful one there is."""
    path = Path(place)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = files.read(path)
    remarks = tuple(str(warning.message) for warning in caught)
    return judged(found, path if path.is_dir() else path.parent, metric, protocol, remarks=remarks, **wishes)


def judged(found: Sequence[Result], folder: Path, metric: str, protocol: str = "", **wishes: Any) -> Bench:
    """The results with the verdict on them; where there is none, the tables alone."""
    verdict, why = None, ""
    done = [result for result in found if result.done]
    if len({result.label for result in done}) < 2:
        why = _too_few(found)
    else:
        try:
            verdict = tournament.settle(found, folder, metric, protocol=protocol)
        except tournament.TooFewError as error:
            why = str(error)
    why = warned(why, unfinished(found)) if why else ""
    tables = list(verdict.experiments) if verdict is not None else []
    judged_protocol = verdict.protocol if verdict is not None else None
    rest = [result for result in found if result.protocol != judged_protocol]
    tables += tournament.experiments(rest, folder, metric) if rest else []
    looks = {label: style(number) for number, label in enumerate(files.labels(found))}
    return Bench(folder, tuple(found), metric, verdict, why, tuple(tables), looks=looks, **wishes)


def _too_few(found: Sequence[Result]) -> str:
    labels = list(dict.fromkeys(result.label for result in found if result.done))
    if labels:
        return f"Only {labels[0]} has finished runs, so there is nothing to compare it with."
    return f"None of {len(found)} runs has finished, so there is nothing to compare."

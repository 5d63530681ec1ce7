"""How training went: loss, validation classes, and the test set as it was seen after the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nearkin.report import summary
from nearkin.report.bench import TEST_FEEDBACK, Bench
from nearkin.report.figures.draw import Figure, sheet
from nearkin.report.figures.lines import Axis, Line, lines
from nearkin.report.markup import Section, folded, name, panels
from nearkin.report.palette import Style
from nearkin.results import Result
from nearkin.tournament import Experiment

Points = tuple[tuple[float, float], ...]
LOSS_WIDTH = 260.0
# Single runs are drawn up to this many losses.
FEW = 8
# Of more, these many and the last are drawn in colour.
BEST = 5


def section(bench: Bench) -> Section | None:
    """For each experiment: measures of every epoch in one panel, the training loss of each loss in one of its own."""
    parts, drawn, losses = [], [], False
    for number, table in enumerate(bench.tables):
        found = [*measures(bench, table, number + 1)]
        small = [*training(bench, table, number + 1)]
        losses = losses or bool(small)
        if found or small:
            body = (panels(found) if found else "") + (panels(small, "small") if small else "")
            parts.append((name(table), body))
            drawn += found
            drawn += [sheet(f"training-{number + 1}", f"Training loss, {table.name}", small)] if small else []
    few = any(len(table.labels) <= FEW for table in bench.tables)
    many = any(len(table.labels) > FEW for table in bench.tables)
    lead = (
        "Lines are means over runs. "
        + ("Thin lines are single runs, dots the epochs that were chosen. " if few else "")
        + (
            f"Of many losses the best {BEST} and the last are in colour; point at a name to see its line. "
            if many
            else ""
        )
        + (
            "Values of the training loss are comparable within a loss only."
            if losses
            else "No run kept its training loss."
        )
    )
    return Section("curves", "Training and validation", lead, folded(parts), tuple(drawn)) if parts else None


def measures(bench: Bench, table: Experiment, number: int) -> list[Figure]:
    """Validation and test measures of every epoch."""
    # A protocol that keeps no classes back measures the test set, and may choose by it.
    looked = (
        "these choose the epoch, so the best is too good" if table.protocol == TEST_FEEDBACK else "nothing is chosen"
    )
    said = {
        "validate": ("Validation classes", f"{table.protocol}: these choose the epoch"),
        "evaluate": ("Test classes", f"{table.protocol}: {looked}"),
        "audit": ("Test classes", f"opened in the end; the best of a line would be {TEST_FEEDBACK}"),
    }
    made = []
    for kind in said:
        series, chosen = [], []
        single = len(table.labels) <= FEW  # more would be a thicket
        for place, at in enumerate(table.order):
            label = table.labels[at]
            runs = bench.counted(table, label)
            each = [_points(bench.log(run, kind), bench.metric, 100.0) for run in runs]
            if any(each):
                behind = tuple(each) if single and len(each) > 1 else ()
                soft = not single and BEST <= place < len(table.labels) - 1
                entry = Line(label, bench.look(label), _mean(each), behind, soft)
                series.append(entry)
                chosen += _chosen(runs, each, label, entry.look) if single else []
        if series and any(len(entry.points) > 1 for entry in series):
            title, under = said[kind]
            made.append(
                lines(
                    f"{kind}-{number}",
                    title,
                    under,
                    series,
                    Axis("epoch", whole=True),
                    Axis(f"{bench.metric} in percent"),
                    height=max(250.0, 70 + 13.0 * len(series)),
                    marks=False,
                    chosen=chosen,
                )
            )
    return made


def training(bench: Bench, table: Experiment, number: int) -> list[Figure]:
    """The training loss, a small panel for each loss, its runs as thin lines."""
    made = []
    for place, at in enumerate(table.order):
        label = table.labels[at]
        runs = bench.counted(table, label)
        each = [_points(bench.log(run, "epoch"), "loss") for run in runs]
        each = [points for points in each if len(points) > 1]
        if each:
            entry = Line(label, bench.look(label), _mean(each), tuple(each) if len(each) > 1 else ())
            made.append(
                lines(
                    f"training-{number}-{place + 1}",
                    label,
                    "",
                    [entry],
                    Axis("epoch", whole=True),
                    Axis("training loss"),
                    height=140.0,
                    width=LOSS_WIDTH,
                    marks=False,
                    named=False,
                )
            )
    return made


def _points(records: Sequence[dict[str, object]], key: str, factor: float = 1.0) -> Points:
    """Epochs, counted from 1, and values."""
    found = []
    for record in records:
        epoch, value = record.get("epoch"), record.get(key)
        if isinstance(epoch, int) and isinstance(value, int | float):
            found.append((epoch + 1.0, factor * float(value)))
    return tuple(found)


def _mean(each: Sequence[Points]) -> Points:
    """The mean where every run has a value; epochs that one of them lacks are left out."""
    tables = [dict(points) for points in each]
    epochs = [epoch for epoch in tables[0] if all(epoch in table for table in tables)]
    return tuple((epoch, sum(table[epoch] for table in tables) / len(tables)) for epoch in epochs)


def _chosen(
    runs: Sequence[Result], each: Sequence[Points], label: str, look: Style
) -> list[tuple[float, float, Style, str]]:
    """A dot on the line of each run, at the epoch that was chosen."""
    found = []
    for run, points in zip(runs, each, strict=True):
        epoch = float(summary.chosen(run))
        value = dict(points).get(epoch, math.nan)
        if epoch and math.isfinite(value):
            by = f" by {TEST_FEEDBACK}" if run.protocol == TEST_FEEDBACK else ""
            words = f"{label}, seed {run.seed}: epoch {epoch:.0f} chosen{by}, {value:.2f} %"
            found.append((epoch, value, look, words))
    return found

"""What choosing the epoch on the test set would have given: how much too good such numbers are."""

from __future__ import annotations

import functools
import math

from nearkin.report import summary
from nearkin.report.bench import TEST_FEEDBACK, Bench
from nearkin.report.figures.dots import dots
from nearkin.report.figures.draw import Figure, twice
from nearkin.report.markup import Section, by_data, plain_name, words
from nearkin.tournament import Experiment


def section(bench: Bench) -> Section | None:
    """One panel for each experiment whose test set was watched without being used."""
    drawn: list[tuple[str, Figure]] = []
    gains: list[tuple[float, str]] = []
    for number, table in enumerate(bench.tables):
        if table.protocol == TEST_FEEDBACK:
            continue
        kinds = [table.protocol, TEST_FEEDBACK]
        rows = []
        for at in table.order:
            label = table.labels[at]
            best = _best(bench, table, label)
            if math.isfinite(best):
                gains.append((best - float(table.scores[at]), label))
                rows.append((label, {table.protocol: float(table.scores[at]), TEST_FEEDBACK: best}))
        if rows:
            title, under = plain_name(table)
            said = f"{bench.metric} in percent, {under}"
            band = summary.best_interval(table)
            make = functools.partial(dots, f"feedback-{number + 1}", title, said, rows, kinds, band=band)
            drawn.append((table.data, twice(make) if len(bench.tables) == 1 else make()))
    if not drawn:
        return None
    judged = any(table.comparison is not None for table in bench.tables if table.protocol != TEST_FEEDBACK)
    several = any(len(table.parts) > 1 for table in bench.tables)
    lead = (
        "The same runs, their epoch chosen by the protocol and chosen on the test set (test_feedback). The distance is what "
        "a paper gains that looks at the test set; it says nothing about the loss. "
        f"Here it is {100 * sum(gain for gain, _ in gains) / len(gains):.2f} points on average and "
        f"{100 * max(gains)[0]:.2f} at most ({words(max(gains)[1])}{', mean of its runs' if several else ''})."
        + (" The band is the 95 % interval of the best score." if judged else "")
    )
    title = "What looking at the test set would gain"
    return Section("feedback", title, lead, by_data(drawn), tuple(figure for _, figure in drawn))


def _best(bench: Bench, table: Experiment, label: str) -> float:
    return summary.mean([summary.value(run.test_feedback, bench.metric) for run in bench.counted(table, label)])

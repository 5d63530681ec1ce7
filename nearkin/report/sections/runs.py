"""Every run on its own, holes included, what the verdict does not say, and how the runs were made."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearkin.report import summary
from nearkin.report.bench import TEST_FEEDBACK, Bench
from nearkin.report.figures.dots import dots
from nearkin.report.figures.draw import NARROW, Figure
from nearkin.report.markup import Section, cell, folded, grid, listed, name, panel, words
from nearkin.report.palette import SERIES
from nearkin.results import MISSING, Result
from nearkin.tournament import Experiment
from nearkin.tournament.experiment import NOT_YET
from nearkin.tournament.words import count, percent

# A value that more losses have than this is that of all others.
FEW = 3


def section(bench: Bench) -> Section | None:
    """A grid of losses and runs for each experiment."""
    parts, drawn = [], []
    for number, table in enumerate(bench.tables):
        figure = spread(bench, table, number + 1)
        drawn += [figure] if figure is not None else []
        beside = f'<div class="aside">{panel(figure)}</div>' if figure is not None else ""
        parts.append((name(table), f'<div class="beside">{sheet(bench, table)}{beside}</div>'))
    holes = [hole for table in bench.tables for hole in table.holes]
    if bench.verdict is not None:
        holes = list(dict.fromkeys([*bench.verdict.holes, *holes]))
    if len(bench.tables) == 1:  # nobody needs to be told which experiment it is
        holes = [hole.removeprefix(f"{bench.tables[0].name}: ") for hole in holes]
    lead = (
        f"{words(bench.metric)} in percent of each run. ✗ failed and ○ missing are holes: nothing is averaged over them. "
        f"Numbers in brackets are left out, so that every loss is compared on the same runs."
    )
    choosers = dict.fromkeys(run.protocol == TEST_FEEDBACK for run in bench.results if summary.chosen(run))
    if choosers:
        named = {False: "validation", True: "the test set"}
        who = " or, under test_feedback, ".join(named[fed] for fed in sorted(choosers))
        lead += f" The small number is the epoch that {who} chose."
    body = folded(parts)
    if holes:
        body = f'<div class="holes"><h3>{count(len(holes), "hole")}</h3>{listed(holes)}</div>{body}'
    return Section("runs", "Every run, and the holes", lead, body, tuple(drawn))


def _parts(runs: Sequence[Result]) -> dict[tuple[int, int], str]:
    """Folds and seeds with their names."""
    parts = sorted({(run.fold, run.seed) for run in runs})
    folds = any(fold for fold, _ in parts)
    return {(fold, seed): f"fold {fold}, seed {seed}" if folds else f"seed {seed}" for fold, seed in parts}


def _labels(table: Experiment, runs: Sequence[Result]) -> list[str]:
    """Every loss, the best first, holes last."""
    labels = [table.labels[at] for at in table.order]
    return labels + [label for label in dict.fromkeys(run.label for run in runs) if label not in labels]


def spread(bench: Bench, table: Experiment, number: int) -> Figure | None:
    """The numbers of the grid as marks; None where there is one run of each loss, or more than marks."""
    runs = bench.runs(table)
    parts = _parts(runs)
    if not 1 < len(parts) <= SERIES:
        return None
    rows = []
    for label in _labels(table, runs):
        own = {parts[run.fold, run.seed]: run for run in runs if run.label == label and run.done}
        values = {part: summary.value(own[part].metrics, bench.metric) for part in parts.values() if part in own}
        if any(math.isfinite(value) for value in values.values()):
            rows.append((label, values))
    title, under = "How far runs of a loss lie apart", f"{bench.metric} in percent, {table.protocol}"
    if not rows:
        return None
    make = functools.partial(dots, f"runs-{number}", title, under, rows, list(parts.values()))
    return replace(make(560.0), narrow=make(NARROW))


def sheet(bench: Bench, table: Experiment) -> str:
    """The grid of one experiment: a row for each loss, a column for each fold and seed."""
    runs = bench.runs(table)
    parts, labels = _parts(runs), _labels(table, runs)
    headings = [("loss", "word"), *((title, "number") for title in parts.values())]
    rows = []
    for label in labels:
        found = {(run.fold, run.seed): run for run in runs if run.label == label}
        cells = [cell(words(label), None, "word")]
        for part in parts:
            used = part in table.parts and label in table.labels
            cells.append(_run(found.get(part), bench.metric, used))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return grid(headings, rows, "runs")


def _run(run: Result | None, metric: str, used: bool) -> str:
    if run is not None and run.status == MISSING:
        return cell(f'<span class="missing">○ {NOT_YET}</span>', None, "number")
    if run is None:
        return cell('<span class="missing">○ missing</span>', None, "number")
    if not run.done:
        return cell('<span class="failed">✗ failed</span>', None, "number", run.error or "no reason given")
    value = summary.value(run.metrics, metric)
    if not math.isfinite(value):
        return cell(f'<span class="missing">no {words(metric)}</span>', None, "number")
    shown = percent(value) if used else f'<span class="unused">({percent(value)})</span>'
    epoch = summary.chosen(run)
    after = f' <small class="epoch">{epoch}</small>' if epoch else ""
    return cell(shown + after, None, "number", f"run {run.id}{f', after epoch {epoch}' if epoch else ''}")


def made(bench: Bench, pictures: Sequence[str] = ()) -> Section:
    """Machine, versions, pictures, settings that are the same in every run, and those that differ between losses."""
    found = []
    for result in bench.begun:
        versions = ", ".join(f"{key} {value}" for key, value in sorted((result.where.get("versions") or {}).items()))
        commit, device = result.where.get("commit", ""), result.where.get("device", "")
        shared = summary.sharing([result])
        shared = f"{shared} on the device at a time" if shared else ""
        said = "; ".join(filter(None, (f"commit {commit}" if commit else "", str(device), versions, shared)))
        if said:
            found.append(said)
    places = [f"{text} ({count(found.count(text), 'run')})" for text in dict.fromkeys(found)]
    if any("*" in str(result.where.get("commit", "")) for result in bench.begun):
        places.append("* behind a commit: the working tree had changes that were not committed")
    same, different = settings(bench)
    body = f"<h3>Where</h3>{listed(places)}" if places else ""
    if bench.verdict is not None and bench.verdict.notes:
        body = f"<h3>What to know before believing it</h3>{listed(bench.verdict.notes)}" + body
    if pictures:
        body += f"<h3>Pictures</h3>{listed(pictures)}"
    if bench.remarks:
        body += f"<h3>Remarks</h3>{listed(bench.remarks)}"
    if different:
        rows = [
            f"<tr>{cell(words(key), None, 'word')}{cell(_lines(values), None, 'word source')}</tr>"
            for key, values in different.items()
        ]
        body += f"<h3>Settings that differ</h3>{grid([('setting', 'word'), ('values', 'word')], rows)}"
    if same:
        rows = [
            f"<tr>{cell(words(key), None, 'word')}{cell(words(value), None, 'word source')}</tr>"
            for key, value in same.items()
        ]
        table = grid([("setting", "word"), ("value", "word")], rows)
        body += f"<details><summary>Settings that all runs share</summary>{table}</details>"
    return Section("made", "How it was made", "What the numbers rest on.", body)


def settings(bench: Bench) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Settings that every run has alike, and those that differ, with the losses that have them."""
    keys = list(dict.fromkeys(key for result in bench.begun for key in result.settings))
    same: dict[str, str] = {}
    different: dict[str, list[str]] = {}
    for key in keys:
        if key in ("out", "packs", "root"):
            continue
        found: dict[str, list[str]] = {}
        for result in bench.begun:
            value = result.settings.get(key, "not set")
            # Of a file the name is enough; where it lay is nobody's business.
            value = Path(value).name if key == "weights" and isinstance(value, str) else value
            found.setdefault(_said(value), []).append(result.label)
        if len(found) == 1:
            same[key] = next(iter(found))
        elif key not in ("loss", "seed", "fold", "dim", "network", "data"):
            different[key] = _by_value({value: list(dict.fromkeys(labels)) for value, labels in found.items()})
    return same, different


def _by_value(found: dict[str, list[str]]) -> list[str]:
    """Each value with its losses; the commonest last, with "all others" where these are many."""
    order = sorted(found, key=lambda value: len(found[value]))
    said = [f"{value}: {', '.join(found[value])}" for value in order]
    alone = set(found[order[-1]]).isdisjoint(label for value in order[:-1] for label in found[value])
    if len(found[order[-1]]) > FEW and alone:
        said[-1] = f"{order[-1]}: all others"
    return said


def _lines(values: Sequence[str]) -> str:
    """Values with their losses below each other, as HTML."""
    made = []
    for value in values:
        what, _, who = value.rpartition(": ")
        made.append(f"<b>{words(what)}</b>: {words(who)}")
    return "<br>".join(made)


def _said(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, sort_keys=True)

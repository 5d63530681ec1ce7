"""What the ablations of the sources give on real birds: docs/ablations.md from the folder of the benchmark.

nearkin bench benchmarks/ablations.toml --workers 3 --settings root=CUB_200_2011 weights=resnet50.safetensors
python benchmarks/ablations.py --keep bench/ablations   pack what the page is made of
python benchmarks/ablations.py                          write docs/ablations.md from there
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from harness import RESULTS, ROOT
from packed import METRIC, PLACES, lost, made, settings_of, unpacked, write_page
from words import counted, listed

from nearkin import published, results
from nearkin.benchmark import grid
from nearkin.results import Result
from nearkin.tournament import Experiment, experiments
from nearkin.tournament.sentences import floor

PACKED = RESULTS / "ablations.tar.xz"
PAGE = ROOT / "docs" / "ablations.md"
LEVEL = 0.05
# One run that several tables share.
SHARED = "ranked_list"


@dataclass(frozen=True)
class Ablation:
    """A table of a source: the grid that repeats it, the source's choice, and how the source names the rows of the grid.

    ``shared``: the label that the shared run has in this grid.
    """

    title: str
    grid: str
    choice: str
    source: str
    table: int
    rows: dict[str, str]
    data: str = "sop"
    shared: str = ""


def _numbered(word: str, letter: str, numbers: tuple[str, ...]) -> dict[str, str]:
    return {f"{word} {float(number)}": f"{letter} = {number}" for number in numbers}


# How the source names them.
LEVELS = {"L": "L", "M": "M", "H": "H", "L, M, H": "(L,M,H)"}
ABLATIONS = (
    Ablation("How far negatives are pushed: alpha", "ranked_list_alpha", "alpha 1.2", "ranked_list", 3,
             _numbered("alpha", "alpha", ("1.0", "1.2", "1.4")), shared="alpha 1.2"),
    Ablation("The margin between positives and negatives", "ranked_list_margin", "margin 0.4", "ranked_list", 4,
             _numbered("margin", "m", ("0", "0.2", "0.4", "0.6", "1.2")), shared="margin 0.4"),
    Ablation("The temperature that weighs negatives", "ranked_list_temperature", "temperature 10.0", "ranked_list", 5,
             _numbered("temperature", "T", ("0", "5", "10", "15", "20")), shared="temperature 10.0"),
    Ablation("Classes in a batch, three images of each", "ranked_list_batch", "60 x 3", "ranked_list", 7,
             {f"{n} x 3": f"{3 * n} = {n} x 3" for n in (40, 50, 55, 60, 65)}, shared="60 x 3"),
    Ablation("Embeddings of one level and of three", "ranked_list_levels", "L, M, H", "ranked_list", 6,
             LEVELS, shared="H"),
    Ablation("The same with the rate and batches that suit three levels", "ranked_list_levels_fast", "L, M, H at 3e-5",
             "ranked_list", 6,
             {f"{level} at 3e-5": there for level, there in LEVELS.items()}),
    Ablation("What weights and what mining add", "unified_view", "raw + vthm", "unified_view", 1,
             {"binomial": "Binomial", "raw": "RAW", "vthm alone": "VTHM", "binomial + vthm": "Binomial+VTHM",
              "raw + distance_weighted": "RAW+DW", "raw + semihard": "RAW + SemiHard", "raw + vthm": "RAW+VTHM (ours)"},
             data="cub200"),
    Ablation("The power of NRA", "nra_power", "power 4.0", "nra", 1, {}),
)  # fmt: skip


def printed(entry: Ablation, label: str) -> float | None:
    """R@1 of a row in the source, in percent."""
    found = [
        fact.value
        for fact in published.facts(entry.source, entry.table, data=entry.data, metric=METRIC)
        if fact.method == entry.rows.get(label)
    ]
    return found[0] if found else None


def chosen(entry: Ablation, runs: list[Result]) -> list[Result]:
    """The runs of an ablation, under the labels that its grid gives them."""
    labels = {job.label for job in grid.read(entry.grid).jobs}
    named = [replace(run, label=entry.shared) if entry.shared and run.label == SHARED else run for run in runs]
    return [run for run in named if run.label in labels]


def section(entry: Ablation, runs: list[Result], table: Experiment | None) -> list[str]:
    source = published.source_of(entry.source)
    lines = [f"## {entry.title}", ""]
    labels = list(dict.fromkeys(job.label for job in grid.read(entry.grid).jobs))
    command = f"`nearkin bench {entry.grid}`"
    if table is None or entry.choice not in table.labels or len(table.labels) < 2:
        return [*lines, f"Not run yet: {command}.", ""]
    where = f"{published.table_of(entry.source, entry.table).label} of *{source.title}*" if entry.rows else ""
    there = (
        f" The last column is {where}, on {entry.data}." if entry.rows else f" *{source.title}* prints no table of it."
    )
    lines += [
        f"{command}; {_seeds(table)}.{there}",
        "",
        f"| | R@1 | 95% interval | against {entry.choice} | p | in the source |",
        "|---|---:|---|---:|---:|---:|",
    ]
    lines += [_row(entry, table, label) for label in labels]
    own = chosen(entry, runs)
    return [*lines, "", _said(entry, table) + _floor(table) + left_out(table, own) + _unlike(entry, own), ""]


def _floor(table: Experiment) -> str:
    """That a p may be smaller than it can be shown; those below 0.001 are not told from each other anyway."""
    assert table.comparison is not None
    said = floor(table) if table.comparison.least >= 0.001 else ""
    return said and f" {said}"


def left_out(table: Experiment, runs: list[Result]) -> str:
    """The runs that no row is made of, each by name: a mean over them would be over other seeds than its neighbours'."""
    lone = [run for run in runs if run.done and not _used(table, run)]
    failed = [run for run in runs if not run.done]
    said = ""
    if lone:
        each = listed([f"seed {run.seed} of {run.label} ({100 * run.metrics[METRIC]:.1f})" for run in lone])
        said += f" Left out, since not every row has it: {each}."
    if failed:
        said += f" Failed: {listed([f'seed {run.seed} of {run.label}' for run in failed])}."
    return said


def _used(table: Experiment, run: Result) -> bool:
    return run.label in table.labels and (run.fold, run.seed) in table.parts


def tables_of(runs: list[Result], folder: Path) -> dict[str, Experiment]:
    """The experiment of each grid that was run."""
    found = {entry.grid: experiments(chosen(entry, runs), folder, METRIC) for entry in ABLATIONS}
    return {name: tables[0] for name, tables in found.items() if tables}


def _unlike(entry: Ablation, runs: list[Result]) -> str:
    """In what else rows differ than in what the table is about, so that nobody takes one for the other."""
    jobs = [job.settings.identity() for job in grid.read(entry.grid).jobs]
    varied = {name for name in jobs[0] if any(job[name] != jobs[0][name] for job in jobs)}
    said = []
    for name in runs[0].settings:
        values: dict[str, list[str]] = {}
        for run in runs:
            values.setdefault(f"{run.settings[name]}", []).append(run.label)
        if len(values) > 1 and name not in varied | {"seed", *PLACES}:
            each = "; ".join(f"{value} for {_quoted(found)}" for value, found in values.items())
            said.append(f"{name} ({each})")
    if not said:
        return ""
    return f" **These runs also differ in {' and in '.join(said)}**; the grid has made them alike since."


def _quoted(labels: list[str]) -> str:
    return ", ".join(f'"{label}"' for label in dict.fromkeys(labels))


def _seeds(table: Experiment) -> str:
    number = len({seed for _, seed in table.parts})
    return "one seed" if number == 1 else f"{number} seeds"


def _row(entry: Ablation, table: Experiment, label: str) -> str:
    there = printed(entry, label)
    said = "" if there is None else f"{there:g}"
    name = f"**{label}**" if label == entry.choice else label
    if label not in table.labels:
        return f"| {name} | not run yet | | | | {said} |"
    assert table.comparison is not None
    at, one = table.labels.index(label), table.labels.index(entry.choice)
    between = table.comparison.intervals
    cells = [name, f"{100 * table.scores[at]:.1f}", f"{100 * between.low[at]:.1f} to {100 * between.high[at]:.1f}"]
    if at == one:
        cells += ["", ""]
    else:
        p = table.comparison.p[at, one]
        cells += [f"{100 * between.difference[at, one]:+.1f}", "< 0.001" if p < 0.001 else f"{p:.3f}"]
    return f"| {' | '.join([*cells, said])} |"


def _said(entry: Ablation, table: Experiment) -> str:
    """In a sentence: what can be told apart from the source's choice."""
    assert table.comparison is not None
    one = table.labels.index(entry.choice)
    apart = {
        label: float(table.comparison.intervals.difference[at, one])
        for at, label in enumerate(table.labels)
        if at != one and table.comparison.p[at, one] < LEVEL
    }
    better, worse = ([label for label, gap in apart.items() if (gap > 0) == above] for above in (True, False))
    parts = [f"{', '.join(found)} {word}" for found, word in ((worse, "worse"), (better, "better")) if found]
    rest = [label for label in table.labels if label != entry.choice and label not in apart]
    if rest:
        parts.append(f"{', '.join(rest)} cannot be told from it")
    best = table.labels[int(np.argmax(table.scores))]
    if best == entry.choice:
        lead = "is the best here too"
    elif best in apart:
        lead = f"is not the best here: {best} is"
    else:
        lead = f"has {best} before it here, by no more than chance"
    missing = len({job.label for job in grid.read(entry.grid).jobs} - set(table.labels))
    of = f", of the {len(table.labels)} that were run" if missing else ""
    return f"The source's choice, {entry.choice}, {lead}{of}. Against it: {'; '.join(parts)}."


def _judged(seeds: list[int]) -> str:
    """Where intervals and p come from, with as many seeds as the tables have."""
    test = "a paired permutation test on the same queries, class by class"
    several, single = any(number > 1 for number in seeds), any(number == 1 for number in seeds)
    over = "test classes and seeds" if several else "test classes"
    p = f"the larger of {test}, and of a test over classes and runs" if several else f"that of {test}"
    said = f"Intervals are over {over}; p is {p}, corrected by Holm for all pairs of a table."
    if several and single:
        said += " Where a table has one seed, it is that of the first alone."
    if single:
        said += " One seed says how these networks differ, not how much of that is luck in training."
    if 2 in seeds:
        said += (
            " Two seeds say little about luck in training: equal rows are called different up to about twice as often as "
            "1 time in 20. Three or more are better."
        )
    return said


def _idle(runs: list[Result], tables: dict[str, Experiment]) -> str:
    """How many finished runs are in no table."""
    used = {
        run.id
        for entry in ABLATIONS
        if entry.grid in tables
        for run in chosen(entry, runs)
        if _used(tables[entry.grid], run)
    }
    idle = [f"seed {run.seed} of {run.label}" for run in runs if run.id not in used]
    return f" {counted(len(used), 'run')} are in the tables; {listed(idle)} in none." if idle else ""


def page(packed: Path = PACKED) -> str:
    with unpacked(packed) as folder:
        every = results.read(folder)
        runs = [run for run in every if run.done]
        tables = tables_of(every, folder)
        lines = [
            "# Ablations on real birds",
            "",
            "What the sources' own ablations give on CUB-200-2011: ResNet-50 with ImageNet weights, 512 dimensions, 15 "
            "epochs, the epoch chosen on a tenth of the training classes (`fixed_validation`), R@1 of the test classes. "
            + _judged([len(table.parts) for table in tables.values()]),
            "",
            "The ranked list paper made its tables on products (SOP) with BN-Inception and three levels: compare "
            "directions, not figures. The command of a table repeats it alone, with the same settings as the command at the "
            "end of this page.",
            "",
        ]
        for entry in ABLATIONS:
            lines += section(entry, every, tables.get(entry.grid))
        lines += [
            "## How it was made",
            "",
            "```",
            f"nearkin bench benchmarks/ablations.toml --workers 3 --settings {settings_of(runs)}",
            "python benchmarks/ablations.py --keep bench/ablations",
            "```",
            "",
            f"{made(runs)}. Runs that tables share were made once.{_idle(runs, tables)}{lost(folder, runs)} "
            "This page is written by the second command from `benchmarks/results/ablations.tar.xz`.",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_page(__doc__, PACKED, PAGE, page)

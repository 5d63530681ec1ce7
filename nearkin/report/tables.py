"""The numbers as files: CSV for programs, Markdown and LaTeX for texts. Every row names its protocol."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from nearkin.report import summary
from nearkin.report.bench import TEST_FEEDBACK, Bench
from nearkin.report.numbers import seconds_of
from nearkin.report.summary import Row
from nearkin.tournament import Experiment, Verdict
from nearkin.tournament.words import between, chance, percent, ranks_of

RUN = ("id", "status", "label", "loss", "data", "network", "dim", "protocol", "fold", "seed")
COSTS = ("seconds", "images_per_second", "peak_bytes", "epochs")


def results_csv(bench: Bench) -> str:
    """One line for each loss in each experiment; scores as shares of 1, empty where there is a hole.

    ``lacking`` counts the runs that failed or are missing, also where the others give a score.
    """
    others = [name for name in summary.names(bench) if name != bench.metric]
    head = ["data", "network", "dim", "protocol", "loss", "rank", "runs", bench.metric, "low", "high", "deviation"]
    head += ["behind_first", "behind_low", "behind_high", "p", "group", *others, "seconds", "images_per_second"]
    head += ["peak_bytes", "numbers", "hole", "lacking"]
    lines = []
    for table in bench.tables:
        for row in summary.rows(bench, table):
            numbers = [row.rank, row.runs, row.score, row.low, row.high, row.deviation, row.behind, row.behind_low]
            numbers += [row.behind_high, row.p]
            more = [*(row.metric(name) for name in others), row.seconds, row.images_per_second, row.peak_bytes]
            more.append(row.numbers or math.nan)
            about = [table.data, table.network, table.dim, table.protocol, row.label]
            lines.append([*about, *map(_number, numbers), row.letters, *map(_number, more), row.hole, row.lacking])
    return _csv(head, lines)


def runs_csv(bench: Bench) -> str:
    """One line for each run, failed ones too; epochs are counted from 1."""
    names = summary.names(bench)
    head = [*RUN, *names, *COSTS, "chosen_epoch", f"{TEST_FEEDBACK}_{bench.metric}", "error"]
    lines = []
    for run in bench.results:
        watched = (run.test_feedback or {}).get(bench.metric, "")
        lines.append(
            [getattr(run, name) for name in RUN]
            + [run.metrics.get(name, "") for name in names]
            + [run.cost.get(name, "") for name in COSTS]
            + [summary.chosen(run) or "", watched, run.error]
        )
    return _csv(head, lines)


def _csv(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([[_harmless(value) for value in line] for line in lines])
    return buffer.getvalue()


def _harmless(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets a quote in front."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _number(value: float) -> object:
    return value if isinstance(value, int) else float(f"{value:.6g}") if math.isfinite(value) else ""


def ranks_csv(verdict: Verdict) -> str:
    """One line for each loss of a ranking over several experiments, with its rank in each."""
    head = ["loss", "mean_rank", "deviation", "total", "best_in", "group", *(table.name for table in verdict.ranked)]
    lines = [
        [
            one.label,
            *map(_number, (one.mean, one.deviation, one.total, one.best)),
            one.letters,
            *map(_number, one.ranks),
        ]
        for one in verdict.standings
    ]
    return _csv(head, lines)


def ranking(verdict: Verdict | None) -> tuple[str, list[str], list[list[str]]] | None:
    """Title, head and lines of the ranking over several experiments, as texts; None where there is none."""
    if verdict is None or verdict.friedman is None:
        return None
    test, many = verdict.friedman, len(verdict.ranked)
    named = "Wilcoxon" if test.method == "wilcoxon" else "Friedman"
    title = f"Ranks by {verdict.metric} over {many} experiments, {verdict.protocol} ({named}, {chance(test.p)}"
    title += f"; critical difference {test.difference:.2f})" if math.isfinite(test.difference) else ")"
    totals = ranks_of([one.total for one in verdict.standings])
    lines = [
        [one.label, f"{one.mean:.2f}", f"{one.deviation:.2f}", total, str(one.best), one.letters or "-"]
        for one, total in zip(verdict.standings, totals, strict=True)
    ]
    return title, ["loss", "mean rank", "deviation", "total", "best in", "group"], lines


def markdown(bench: Bench) -> str:
    """The sentence of the verdict, the ranking over all experiments, then a heading and a table for each of them."""
    verdict = bench.verdict
    parts = [f"{_piped(verdict.sentence if verdict is not None else bench.why)}\n"]
    overall = ranking(verdict)
    parts += [_table(*overall)] if overall is not None else []
    parts += [_table(table.name, *columns(bench, summary.rows(bench, table))) for table in bench.tables]
    holes = list(
        dict.fromkeys([*(verdict.holes if verdict is not None else ()), *(h for t in bench.tables for h in t.holes)])
    )
    if holes:
        parts.append("Holes:\n\n" + "\n".join(f"- {_piped(hole)}" for hole in holes) + "\n")
    return "\n".join(parts)


def _table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    cells = [
        head,
        ["---" if name == "loss" else "---:" for name in head],
        *([_piped(text) for text in line] for line in lines),
    ]
    return f"### {_piped(title)}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def _piped(text: str) -> str:
    for sign in ("\\", "|", "<", "*", "_", "`", "["):
        text = text.replace(sign, "\\" + sign)
    return text.replace("\n", " ")


def latex(bench: Bench) -> str:
    """A tabular of the ranking over all experiments, then one for each of them with its holes below it."""
    parts = ["% Needs \\usepackage{booktabs}.\n"]
    overall = ranking(bench.verdict)
    if overall is not None:
        parts.append(_tabular(overall[0], overall[0], *overall[1:], bold=(0, 1)))
    for table in bench.tables:
        head, lines = columns(bench, summary.rows(bench, table))
        best = next((row.label for row in summary.rows(bench, table) if not row.hole), None)
        at = next((number for number, line in enumerate(lines) if line[1] == best), -1)
        caption = f"{bench.metric} in percent on {table.name}"
        parts.append(_tabular(table.name, caption, head, lines, bold=(at, 2), note=_note(table)))
    return "\n".join(parts)


def _tabular(
    name: str,
    caption: str,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    bold: tuple[int, int],
    note: str = "",
) -> str:
    """A table with one cell in bold."""
    shape = "".join("l" if column == "loss" else "r" for column in head)
    cells = [[_tex(text) for text in line] for line in lines]
    if 0 <= bold[0] < len(cells):
        cells[bold[0]][bold[1]] = f"\\textbf{{{cells[bold[0]][bold[1]]}}}"
    return (
        f"% {_comment(name)}\n\\begin{{table}}\n\\centering\n\\caption{{{_tex(caption)}.}}\n"
        f"\\begin{{tabular}}{{{shape}}}\n\\toprule\n{' & '.join(map(_tex, head))} \\\\\n\\midrule\n"
        + "\n".join(f"{' & '.join(line)} \\\\" for line in cells)
        + f"\n\\bottomrule\n\\end{{tabular}}\n{note}\\end{{table}}\n"
    )


def _note(table: Experiment) -> str:
    """What failed or is missing, as small print below a tabular; the caption has named the experiment."""
    holes = [_tex(hole.removeprefix(f"{table.name}: ")) for hole in table.holes]
    return f"\\par\\smallskip\\footnotesize Holes: {' '.join(holes)}\n" if holes else ""


_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "\n": " ",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _comment(text: str) -> str:
    return text.replace("\n", " ")


def columns(bench: Bench, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """The table of an experiment as texts: the columns that have something in them."""
    judged = any(math.isfinite(row.low) for row in rows)
    several = any(math.isfinite(row.deviation) for row in rows)
    timed = any(math.isfinite(row.seconds) for row in rows)
    others = [name for name in summary.names(bench) if name != bench.metric]
    head = ["rank", "loss", bench.metric]
    head += ["95 % interval"] if judged else []
    head += ["deviation"] if several else []
    head += ["group"] if judged else []
    head += others + (["time"] if timed else [])
    unequal = len({row.numbers for row in rows if not row.hole}) > 1
    head += ["length"] if unequal else []
    lines = []
    for row, place in zip(rows, ranks_of([row.rank for row in rows]), strict=True):
        line = [place, row.label, percent(row.score)]
        line += [between(row.low, row.high)] if judged else []
        line += [percent(row.deviation)] if several else []
        line += [row.letters or "-"] if judged else []
        line += [percent(row.metric(name)) for name in others]
        line += [seconds_of(row.seconds)] if timed else []
        line += [f"{row.numbers:,}" if row.numbers else "-"] if unequal else []
        if row.hole:
            line[2] = "hole"
        lines.append(line)
    return head, lines

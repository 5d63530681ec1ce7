"""What ten folds of the thesis' best three losses give on real birds: docs/folds.md from the folder of the benchmark.

nearkin bench cross_validation --settings root=CUB_200_2011 weights=resnet50.safetensors
python benchmarks/folds.py --keep bench/cross_validation   pack what the page is made of
python benchmarks/folds.py                                 write docs/folds.md from there
"""

from __future__ import annotations

import statistics
from pathlib import Path

from harness import RESULTS, ROOT
from packed import METRIC, lost, made, settings_of, unpacked, write_page

from nearkin import published, results, tournament
from nearkin.benchmark import grid
from nearkin.results import Result

PACKED = RESULTS / "folds.tar.xz"
PAGE = ROOT / "docs" / "folds.md"


def printed(loss: str) -> str:
    """Mean and deviation in the thesis."""
    for fact in published.facts("deep_dive", 12, metric=METRIC):
        if fact.loss == loss:
            return f"{fact.value} ± {fact.deviation}"
    return ""


def row(loss: str, runs: list[Result], folds: int) -> str:
    """Test results of the epochs that validation chose."""
    found = [100 * run.metrics[METRIC] for run in runs]
    chosen = [100 * run.validation[METRIC] for run in runs if run.validation]
    cells = [loss, f"{len(runs)} of {folds}"]
    cells.append(f"{statistics.fmean(chosen):.2f}" if chosen else "")
    mean = f"{statistics.fmean(found):.2f}" if found else ""
    cells.append(f"{mean} ± {statistics.stdev(found):.2f}" if len(found) > 1 else mean)
    return f"| {' | '.join([*cells, printed(loss)])} |"


def judged(verdict: tournament.Verdict, runs: list[Result]) -> list[str]:
    """How sure the order is, whether the thesis has the same, and what choosing on the test classes would have added."""
    there = {fact.loss: fact.value for fact in published.facts("deep_dive", 12, metric=METRIC)}
    here = [entry.label for entry in verdict.standings]
    same = "the same order" if here == sorted(here, key=lambda loss: -there[loss]) else "another order"
    added = [100 * (run.test_feedback[METRIC] - run.metrics[METRIC]) for run in runs if run.test_feedback]
    equal = [f"{' and '.join(group)} cannot be told apart." for group in verdict.groups] or ["All are told apart."]
    return [
        " ".join(equal),
        "",
        f"The thesis has {same}: {', '.join(sorted(here, key=lambda loss: -there[loss]))}. " + " ".join(verdict.notes),
        "",
        f"On these {len(added)} runs the best of the audited epochs is {statistics.fmean(added):.2f} points of R@1 above "
        f"the one that validation chose (most {max(added):.2f}): what `test_feedback` adds by the epoch alone.",
    ]


def page(packed: Path = PACKED) -> str:
    jobs = grid.read("cross_validation").jobs
    folds = len({job.settings.fold for job in jobs})
    with unpacked(packed) as folder:
        runs = [run for run in results.read(folder) if run.done]
        verdict, left = tournament.settle(runs, folder, METRIC), lost(folder, runs)
    lines = [
        "# Ten folds on real birds",
        "",
        "The training classes of CUB-200-2011 in ten parts; each part chooses the epoch once while the other nine train "
        "(`cross_validation`). R@1 of the test classes, mean and sample standard deviation over folds: ResNet-50 with "
        "ImageNet weights, 512 dimensions, 15 epochs. The thesis' column is its Table 12, with BN-Inception.",
        "",
    ]
    if len(runs) < len(jobs):
        lines += [f"{len(runs)} of {len(jobs)} runs are done: not yet what ten folds would say.", ""]
    lines += ["| loss | folds | validation R@1 | test R@1 | in the thesis |", "|---|---:|---:|---:|---:|"]
    lines += [
        row(loss, [run for run in runs if run.label == loss], folds)
        for loss in dict.fromkeys(job.label for job in jobs)
    ]
    lines += ["", f"**{verdict.sentence}**", "", *judged(verdict, runs), ""]
    lines += [
        "```",
        f"nearkin bench cross_validation --settings {settings_of(runs)}",
        "python benchmarks/folds.py --keep bench/cross_validation",
        "```",
        "",
        f"{made(runs)}.{left} This page is written by the second command from `benchmarks/results/folds.tar.xz`.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_page(__doc__, PACKED, PAGE, page)

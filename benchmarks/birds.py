"""What the comparison on real birds says: docs/birds.md from the folder of the benchmark.

    nearkin bench benchmarks/birds.toml --workers 3 --settings root=CUB_200_2011 weights=resnet50.safetensors
    python benchmarks/birds.py --keep bench/birds      pack what the page is made of into benchmarks/results/birds.tar.xz
    python benchmarks/birds.py                         write docs/birds.md from there

Kept are results, logs of measures and the score of every query; neither weights nor pictures, nor where files lay.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tuned
from claims import CLAIMS
from claims_alike import beside
from claims_tested import claim, pairs
from harness import RESULTS, ROOT
from packed import METRIC, PLACES, lost, settings_of, unpacked, write_page
from words import counted, listed, point

from nearkin.report.bench import Bench, read
from nearkin.results import SHARED, Result
from nearkin.tournament import Experiment, groups, letters
from nearkin.tournament.sentences import floor

PACKED = RESULTS / "birds.tar.xz"
PAGE = ROOT / "docs" / "birds.md"


@dataclass(frozen=True)
class Course:
    """What one run measured: R@1 in percent after each epoch, counted from 1, and the epoch that validation chose."""

    run: Result
    validation: dict[int, float]
    test: dict[int, float]
    images: int

    @classmethod
    def of(cls, bench: Bench, run: Result) -> Course:
        kinds = {kind: bench.log(run, kind) for kind in ("validate", "audit")}
        seen = {kind: {line["epoch"] + 1: 100 * line[METRIC] for line in lines} for kind, lines in kinds.items()}
        found = cls(run, seen["validate"], seen["audit"], kinds["validate"][0]["queries"])
        # The auditor and the measure of the chosen weights must say the same, or one of them looked at something else.
        assert math.isclose(found.test[found.epoch], found.chosen, abs_tol=1e-6), run.id
        return found

    @property
    def epoch(self) -> int:
        assert self.run.validation is not None
        return int(self.run.validation["epoch"]) + 1

    @property
    def chosen(self) -> float:
        return 100 * self.run.metrics[METRIC]

    @property
    def last(self) -> float:
        return self.test[max(self.test)]

    @property
    def gain(self) -> float:
        """What choosing the epoch on the test classes would have added."""
        return max(self.test.values()) - self.chosen

    @property
    def early(self) -> bool:
        return self.epoch == min(self.test)

    @property
    def lead(self) -> int:
        """By how many validation images the chosen epoch was better than the last."""
        return round((self.validation[self.epoch] - self.validation[max(self.validation)]) / 100 * self.images)


def differing(runs: Sequence[Result]) -> dict[str, list[str]]:
    """Settings that differ between losses, with the value of each; the seeds of one loss must agree."""
    aside = ("seed", "loss", *PLACES)
    first: dict[str, Result] = {}
    for run in runs:
        known = first.setdefault(run.label, run)
        assert all(known.settings[name] == value for name, value in run.settings.items() if name not in aside), run.id
    names = [name for name in runs[0].settings if name not in aside]
    values = {name: [_value(run.settings[name]) for run in first.values()] for name in names}
    return {"loss": list(first)} | {name: found for name, found in values.items() if len(set(found)) > 1}


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def page(packed: Path = PACKED) -> str:
    """The whole page, from what was packed."""
    with unpacked(packed) as folder:
        return text(read(folder))


def text(bench: Bench) -> str:
    table = next(table for table in bench.tables if table.labels)
    courses = {label: [Course.of(bench, run) for run in bench.counted(table, label)] for label in table.labels}
    parts = [
        _head(bench, table, courses),
        _scores(table, courses),
        _choice(table, courses),
        _feedback(table, courses),
        _claims(table, courses),
        _recipes(table, courses),
        _made(bench, [course.run for found in courses.values() for course in found]),
    ]
    return "\n".join(line for part in parts for line in [*part, ""]).rstrip("\n") + "\n"


def _head(bench: Bench, table: Experiment, courses: dict[str, list[Course]]) -> list[str]:
    assert bench.verdict is not None and table.comparison is not None
    one = next(iter(courses.values()))[0]
    settings = one.run.settings
    return [
        "# Which loss is best on real birds",
        "",
        f"**{bench.verdict.sentence}**",
        "",
        f"CUB-200-2011, ResNet-50 with ImageNet weights, {table.dim} dimensions (L/M/H: 3 x {table.dim}), "
        f"{counted(len(table.parts), 'seed')}, the default recipe of each loss, {settings['epochs']} epochs for all. "
        f"{100 * (1 - settings['ratio']):.0f}% of the training classes ({one.images} images) were held out and chose the "
        f"epoch (`{table.protocol}`), the same classes in every run. The {table.comparison.classes} test classes "
        f"({table.comparison.queries:,} queries) were measured every {settings['evaluate_every']} epochs by an auditor "
        "whose file was opened after the choice. [The whole report](birds/index.html) has every figure and table; its "
        "pictures are of drawn characters, since those of birds may not be passed on.",
        "",
        "How the recipes were chosen is told in [Real birds](cub.md): on the 100 training classes, those of validation "
        "among them, and for some losses a second time after a look at the test classes. Here nothing was chosen but the "
        "epoch.",
        *(["", *table.holes] if table.holes else []),
    ]


def _scores(table: Experiment, courses: dict[str, list[Course]]) -> list[str]:
    comparison = table.comparison
    assert comparison is not None
    order = table.order
    named = letters(groups(comparison.apart[order][:, order]), len(order))
    lines = [
        "| loss | R@1 | each seed (epoch chosen) | 95% interval | group | last epoch | seconds |",
        "|---|---:|---|---|---|---:|---:|",
    ]
    for place, at in enumerate(order):
        label = table.labels[at]
        found = courses[label]
        low, high = 100 * comparison.intervals.low[at], 100 * comparison.intervals.high[at]
        seconds = statistics.mean(course.run.cost["seconds"] for course in found)
        each = ", ".join(f"{course.chosen:.1f} ({course.epoch})" for course in found)
        lines.append(
            f"| {label} | {_mean([course.chosen for course in found])} | {each} | {low:.1f} to {high:.1f} | "
            f"{named[place]} | {_mean([course.last for course in found])} | {seconds:.0f} |"
        )
    lines += [
        "",
        "Behind ± is the sample standard deviation over seeds. Intervals are bootstraps over test classes and runs. Two "
        "losses share a letter when they cannot be told apart: paired permutation tests on the same queries and tests over "
        f"classes and runs, the larger p of both, Holm-corrected for {len(order) * (len(order) - 1) // 2} pairs, 5%. "
        "[How](tournament.md). The column of the last epoch chooses nothing; its differences are not tested.",
    ]
    return lines


def _mean(values: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def _pooled(values: Sequence[Sequence[float]]) -> float:
    """The deviation within groups, over all of them."""
    return math.sqrt(statistics.mean(statistics.variance(found) for found in values))


def _choice(table: Experiment, courses: dict[str, list[Course]]) -> list[str]:
    every = [course for found in courses.values() for course in found]
    seen = [value for course in every for value in course.validation.values()]
    lines = [
        "## Spread over seeds, and the choice of the epoch",
        "",
        f"The validation classes are few and easy: R@1 on them lies between {min(seen):.1f} and {max(seen):.1f}%, and one "
        f"of the {every[0].images} images is {100 / every[0].images:.2f} points. So the choice of the epoch is partly luck, "
        "and that luck is in the numbers above.",
    ]
    if len(table.parts) > 1:
        wide = max(courses, key=lambda label: statistics.stdev(course.chosen for course in courses[label]))
        chosen = _pooled([[course.chosen for course in found] for found in courses.values()])
        last_one = _pooled([[course.last for course in found] for found in courses.values()])
        lines[-1] += (
            f" The deviation over seeds, pooled over losses (the root of the mean variance), is {chosen:.2f} points at the "
            f"chosen epochs and {last_one:.2f} at the last one. {wide} varies most: "
            f"{listed([f'{course.chosen:.1f} after epoch {course.epoch}' for course in courses[wide]])}; at the last epoch "
            f"the same runs have {listed([f'{course.last:.1f}' for course in courses[wide]])}."
        )
    early = [course for at in table.order for course in courses[table.labels[at]] if course.early]
    if early:
        first = min(every[0].test)
        lines += [
            "",
            f"{counted(len(early), 'run').capitalize()} of {len(every)} stopped at the first measure, epoch {first}:",
            "",
            "| loss | seed | R@1 at the chosen epoch | at the last epoch | lead on validation, in images |",
            "|---|---:|---:|---:|---:|",
            *(
                f"| {course.run.label} | {course.run.seed} | {course.chosen:.1f} | {course.last:.1f} | {course.lead} |"
                for course in early
            ),
        ]
    last = sorted(courses, key=lambda label: -statistics.mean(course.last for course in courses[label]))
    lines += [
        "",
        "By the last epoch the order of means is "
        + ", ".join(f"{label} {statistics.mean(course.last for course in courses[label]):.1f}" for label in last)
        + ".",
    ]
    return lines


def _feedback(table: Experiment, courses: dict[str, list[Course]]) -> list[str]:
    every = [course for found in courses.values() for course in found]
    gains = [course.gain for course in every]
    ahead = [course.last - course.chosen for course in every]
    rows = sorted(courses, key=lambda label: -statistics.mean(course.gain for course in courses[label]))
    return [
        "## What choosing on the test classes would have added",
        "",
        f"On these {len(every)} runs the best of the audited epochs is {statistics.mean(gains):.2f} points of R@1 above the "
        f"epoch that validation chose (median {statistics.median(gains):.2f}, most {max(gains):.2f}; nothing in "
        f"{sum(gain < 1e-9 for gain in gains)} runs). That is what `test_feedback` adds on the same runs by the epoch "
        f"alone, before any setting is chosen that way too. The last epoch, which nobody chose, is "
        f"{abs(statistics.mean(ahead)):.2f} points {'above' if statistics.mean(ahead) > 0 else 'below'} the chosen one on "
        f"average, and the best is {statistics.mean(gains) - statistics.mean(ahead):.2f} above the last.",
        "",
        "| loss | added, mean over seeds | each seed |",
        "|---|---:|---|",
        *(
            f"| {label} | {point(statistics.mean(course.gain for course in courses[label]), 2)} | "
            f"{', '.join(point(course.gain, 2) for course in courses[label])} |"
            for label in rows
        ),
    ]


def _claims(table: Experiment, courses: dict[str, list[Course]]) -> list[str]:
    last = {label: statistics.mean(course.last for course in found) for label, found in courses.items()}
    lines = [
        "## What becomes of the sources' claims here",
        "",
        "Points of R@1 on CUB-200-2011. The sources used other networks and mostly chose on the test classes, and several "
        "quote their competitors from elsewhere ([published numbers](published.md)); here all had the same network, epochs "
        "and choice of the epoch, each its own recipe. *Here* and its interval are at the epochs that validation chose; "
        "the last epoch stands beside them. The interval and the first p are those of the pair alone (an interval has the "
        "shape of the bootstrap, so close to zero the two may disagree); the second p is corrected for all pairs and "
        "decides. *Not certain*: below 5% alone, not after the correction. *Open*, *cannot be told apart*: not even alone. "
        "A difference is one of loss and recipe together ([below](#where-the-recipes-differ)).",
        "",
    ]
    if said := floor(table):
        lines[-2] += f" {said}"
    for entry in CLAIMS:
        found = pairs(table, entry, last) if entry.one in table.labels else []
        if found:
            own = courses[entry.one][0].run
            unlike = {pair.other: differing([own, courses[pair.other][0].run]) for pair in entry.alike}
            lines += claim(entry, found, beside(entry, unlike))
    return lines[:-1]


def _recipes(table: Experiment, courses: dict[str, list[Course]]) -> list[str]:
    labels = [table.labels[at] for at in table.order]
    runs = [course.run for label in labels for course in courses[label]]
    found = differing(runs)
    assert not {"split_seed", "fold", "ratio", "epochs", "evaluate_every"} & set(found), "the runs are not alike"
    found |= tuned.columns(labels)
    return [
        "## Where the recipes differ",
        "",
        "A difference between two losses is one of loss and recipe together." + _twins(runs) + tuned.said(labels),
        "",
        "| " + " | ".join(found) + " |",
        "|" + "---|" * len(found),
        *("| " + " | ".join(values) + " |" for values in zip(*found.values(), strict=True)),
    ]


def _twins(runs: Sequence[Result]) -> str:
    """Which settings differ between entries of one loss, beside what their labels say."""
    said = []
    labels = list(dict.fromkeys((run.loss, run.label) for run in runs))
    for number, (loss, label) in enumerate(labels):
        for other_loss, other in labels[number + 1 :]:
            if loss == other_loss:
                pair = [next(run for run in runs if run.label == name) for name in (label, other)]
                found = [name for name in differing(pair) if name not in ("loss", "levels", "loss_settings")]
                said += [f" {label} and {other} differ in {listed(found)} too."] if found else []
    return "".join(said)


def _made(bench: Bench, runs: Sequence[Result]) -> list[str]:
    said: dict[str, dict[str, list[Result]]] = {}
    for run in runs:
        versions = ", ".join(f"{name} {version}" for name, version in run.where["versions"].items())
        said.setdefault(f"{run.where['device']}, {versions}", {}).setdefault(run.where["commit"], []).append(run)
    machines = []
    for machine, commits in said.items():
        each = [
            f"{counted(len(found), 'run')} at commit {commit} ({_seeds(found)})" for commit, found in commits.items()
        ]
        machines.append(f"{machine}: {listed(each)}")
    star = any("*" in commit for commits in said.values() for commit in commits)
    [workers] = {run.where[SHARED] for run in runs}
    return [
        "## How it was made",
        "",
        f"{len(runs)} runs, {workers} at a time on one device, so seconds are those of a shared device. "
        + f"{'; '.join(machines)}."
        + (" * The working tree had changes that were not committed." if star else "")
        + (
            " Seeds and commits go together, so the spread over seeds holds what changed between the commits too."
            if any(len(commits) > 1 for commits in said.values())
            else ""
        )
        + " The settings of a loss are the same in all its runs.",
        "",
        "```",
        f"nearkin bench benchmarks/birds.toml --workers {workers} --settings {settings_of(runs)}",
        "python benchmarks/birds.py --keep bench/birds",
        "nearkin bench benchmarks/pictures.toml --out runs/pictures",
        'nearkin report bench/birds --pictures runs/pictures --figures "" --out docs/birds '
        '--title "Which loss is best on real birds?"',
        "rm -r docs/birds/cache",
        "```",
        "",
        "This page is written by the second command from `benchmarks/results/birds.tar.xz`: results, measures of every "
        "epoch and the score of every query." + lost(bench.folder, runs),
    ]


def _seeds(runs: Sequence[Result]) -> str:
    found: dict[int, int] = {}
    for run in runs:
        found[run.seed] = found.get(run.seed, 0) + 1
    return ", ".join(f"seed {seed}: {counted(count, 'loss', 'losses')}" for seed, count in sorted(found.items()))


if __name__ == "__main__":
    write_page(__doc__, PACKED, PAGE, page)

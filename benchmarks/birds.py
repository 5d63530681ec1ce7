"""What the comparison on real birds says: docs/birds.md from the folder of the benchmark.

    nearkin bench benchmarks/birds.toml --out bench/birds --settings root=CUB_200_2011 weights=resnet50.safetensors
    python benchmarks/birds.py --keep bench/birds      pack what the page is made of into benchmarks/results/birds.tar.xz
    python benchmarks/birds.py                         write docs/birds.md from there

Kept are results, logs of measures and the score of every query; neither weights nor pictures.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from harness import RESULTS, ROOT

from nearkin import results as files
from nearkin.report.bench import Bench, read
from nearkin.results import Result
from nearkin.tournament import Experiment, groups, letters

PACKED = RESULTS / "birds.tar.xz"
MEASURES = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision")
# A claim of the sources: who, over whom, and in whose words.
CLAIMS = [
    ("Ranked list loss and its competitors", "ranked_list", ["lifted_structure", "n_pair", "triplet", "contrastive",
     "proxy_nca", "margin", "multi_similarity", "proxy_anchor"],
     "The paper reports it ahead of the losses before it."),
    ("Ranked list loss with three levels and its competitors", "ranked_list L/M/H", ["ranked_list", "lifted_structure",
     "n_pair", "triplet", "proxy_nca", "margin", "multi_similarity", "proxy_anchor"],
     "The paper reports L/M/H, three times as many dimensions, ahead of one level and of the others."),
    ("RAW with VTHM (multi_similarity) and what it grew from", "multi_similarity", ["binomial_deviance", "lifted_structure"],
     "The unified view reports its weights ahead of binomial deviance and lifted structure."),
    ("NRA, triplet and lifted structure", "nra", ["triplet", "lifted_structure"],
     "The paper reports it ahead of both."),
    ("Proxy repulsion and proxy anchor", "proxy_repulsion 1", ["proxy_anchor"],
     "The thesis proposes the first form to replace a part of proxy anchor."),
    ("Proxy repulsion and proxy anchor, second form", "proxy_repulsion 2", ["proxy_anchor"],
     "The thesis proposes the second form likewise."),
]  # fmt: skip


def keep(folder: Path, packed: Path = PACKED) -> None:
    """Pack results, logs and scores of a benchmark's runs; neighbours of each query are left out."""
    from safetensors import safe_open
    from safetensors.numpy import save

    found = [run for run in files.read(folder) if run.done]
    with tarfile.open(packed, "w:xz", preset=9) as archive:
        _add(archive, "results.jsonl", (folder / files.FILE).read_bytes())
        for run in found:
            for name in ("metrics.json", "audit.jsonl", "similarities.json"):
                _add(archive, f"{run.folder}/{name}", (folder / run.folder / name).read_bytes())
            measured = [
                line for line in (folder / run.folder / "log.jsonl").read_bytes().splitlines() if _measure(line)
            ]
            _add(archive, f"{run.folder}/log.jsonl", b"\n".join(measured) + b"\n")
            with safe_open(folder / run.folder / files.QUERIES, "numpy") as content:
                wanted = [name for name in content.keys() if name in (*MEASURES, "rows", "labels")]  # noqa: SIM118
                arrays = {name: content.get_tensor(name) for name in wanted}
                text = content.metadata()
            _add(archive, f"{run.folder}/{files.QUERIES}", save(arrays, text))
    print(f"{packed}: {len(found)} runs, {packed.stat().st_size / 1e6:.1f} MB")


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _measure(line: bytes) -> bool:
    return json.loads(line).get("kind") in ("validate", "evaluate", "start", "end")


def gains(bench: Bench, table: Experiment) -> dict[str, list[float]]:
    """For each loss what choosing the epoch on the test classes would have added to R@1, run by run, in points."""
    found: dict[str, list[float]] = {}
    for label in table.labels:
        for run in bench.counted(table, label):
            seen = [record["recall@1"] for record in bench.log(run, "audit")]
            found.setdefault(label, []).append(100 * (max(seen) - run.metrics["recall@1"]))
    return found


def said(table: Experiment, one: str, other: str) -> str:
    """The difference of two losses with its certainty, as a row of a table."""
    first, second = table.labels.index(one), table.labels.index(other)
    difference = 100 * (table.scores[first] - table.scores[second])
    assert table.comparison is not None
    p = float(table.comparison.p[first, second])
    verdict = "cannot be told apart" if not table.comparison.apart[first, second] else (
        "better" if difference > 0 else "worse"
    )  # fmt: skip
    return f"| {other} | {difference:+.1f} | {'< 0.001' if p < 0.001 else f'{p:.3f}'} | {verdict} |"


def _place(run: Result) -> str:
    versions = [f"{name} {version}" for name, version in run.where["versions"].items()]
    return ", ".join([run.where["device"], *versions, f"commit {run.where['commit']}"])


def _number(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"{seeds} seeds"


def page(packed: Path = PACKED) -> None:
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(packed) as archive:
            archive.extractall(place, filter="data")
        (ROOT / "docs" / "birds.md").write_text(text(read(place)))


def text(bench: Bench) -> str:
    table = next(table for table in bench.tables if table.labels)
    assert bench.verdict is not None and table.comparison is not None
    runs = [run for label in table.labels for run in bench.counted(table, label)]
    won = gains(bench, table)
    every = [gain for found in won.values() for gain in found]
    order = table.order
    named = letters(groups(table.comparison.apart[order][:, order]), len(order))
    lines = [
        "# Which loss is best on real birds",
        "",
        f"**{bench.verdict.sentence}**",
        "",
        f"CUB-200-2011, ResNet-50 with ImageNet weights, 512 dimensions (L/M/H: 3 x 512), {_number(len(table.parts))}, the "
        "default recipe of each loss with the same number of epochs for all. A tenth of the training classes chose the "
        "epoch (`fixed_validation`); the test classes were measured after every third epoch by an auditor whose file was "
        "opened after the choice. Intervals are bootstraps over test classes and runs; two losses share a letter when they "
        "cannot be told apart (paired permutation tests on the same queries and tests over runs, Holm-corrected, 5%).",
        "",
        "| loss | R@1 | 95% interval | cannot be told apart | seconds | test feedback would add |",
        "|---|---:|---|---|---:|---:|",
    ]
    for place, at in enumerate(order):
        label = table.labels[at]
        low, high = 100 * table.comparison.intervals.low[at], 100 * table.comparison.intervals.high[at]
        seconds = statistics.mean(run.cost["seconds"] for run in bench.counted(table, label))
        spread = "" if np.isnan(table.spread[at]) else f" ± {100 * table.spread[at]:.1f}"
        lines.append(
            f"| {label} | {100 * table.scores[at]:.1f}{spread} | {low:.1f} to {high:.1f} | {named[place]} | {seconds:.0f} | "
            f"{statistics.mean(won[label]):+.2f} |"
        )
    lines += ["", *table.holes[-1:], ""]
    lines += [
        "## What choosing on the test classes would have added",
        "",
        f"Over these {len(every)} runs the best of the audited epochs is {statistics.mean(every):.2f} points of R@1 above "
        f"the epoch that validation chose (median {statistics.median(every):.2f}, most {max(every):.2f}). That is what "
        "`test_feedback` flatters by, on the same runs, before any setting is chosen that way too.",
        "",
        "## What becomes of the sources' claims here",
        "",
    ]
    for title, one, others, words in CLAIMS:
        if one not in table.labels:
            continue
        present = [other for other in others if other in table.labels]
        lines += [
            f"**{title}.** {words} Here, {one} against:",
            "",
            "| | points of R@1 | p | so it is |",
            "|---|---:|---:|---|",
        ]
        lines += [said(table, one, other) for other in present] + [""]
    places = sorted({_place(run) for run in runs if run.where})
    lines += [
        f"{len(runs)} runs, three at a time on one device ({'; '.join(places)}). What the page is made of: "
        "`benchmarks/results/birds.tar.xz`; the runs: `nearkin bench benchmarks/birds.toml`.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", help="folder of the benchmark, to be packed first")
    arguments = parser.parse_args()
    if arguments.keep:
        keep(Path(arguments.keep))
    page()


if __name__ == "__main__":
    main()

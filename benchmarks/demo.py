"""Run the demonstration, record its table and time, and fill the table of the README.

python benchmarks/demo.py     writes benchmarks/results/demo.json
"""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

from harness import ROOT, conditions, fill, write

from nearkin.demo import MEASURES, Demo, index, rows
from nearkin.results import heading


def main() -> None:
    where, settings = conditions(), Demo()
    found, _, _, seconds = rows(settings)
    begin = time.perf_counter()
    index(settings)
    built = round(time.perf_counter() - begin, 1)
    seconds = round(seconds + built, 1)
    where["threads"] = settings.threads
    facts = {"conditions": where, "settings": dataclasses.asdict(settings), "seconds": seconds, "index_seconds": built}
    page(json.loads(write("demo.json", {**facts, "rows": found}).read_text()))


def page(result: dict[str, Any]) -> None:
    """The table of README."""
    where, seconds, built, found = (result[key] for key in ("conditions", "seconds", "index_seconds", "rows"))
    text = ["| unseen characters | " + " | ".join(map(heading, MEASURES)) + " |", "|---|" + "---:|" * len(MEASURES)]
    for name, row in found.items():
        text.append(f"| {name} | " + " | ".join(f"{100 * row[key]:.1f}" for key in MEASURES) + " |")
    text += [
        "",
        f"{seconds:.0f} s in all, {built:.0f} of them for the index and its map; the rest on one thread of "
        f"{where['device']}, torch {where['versions']['torch']}, commit "
        f"{where['commit']}, `{where['command']}`.",
    ]
    fill(ROOT / "README.md", "demo", "\n".join(text))


if __name__ == "__main__":
    main()

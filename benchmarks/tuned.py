"""How many runs the settings of each recipe were chosen by: recipes that were tried more often stand on better ground."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from harness import RESULTS
from words import counted, listed

FILES = {"cub-validation.json": "one split", "cub-tuning.json": "folds"}
"""Where the trials are kept, and in a word on what they were measured: classes of the training half, never those of test."""


def trials(name: str) -> Counter[str]:
    """How often each loss, as the page calls it, was trained to choose its settings."""
    return Counter(str(run["run"]) for run in json.loads((RESULTS / name).read_bytes())["runs"])


def columns(labels: Sequence[str]) -> dict[str, list[str]]:
    """A column of the page for each file, a row for each label."""
    found = {name: trials(name) for name in FILES}
    return {f"tuning runs, {where}": [str(found[name][label]) for label in labels] for name, where in FILES.items()}


def said(labels: Sequence[str]) -> str:
    """How unequal the budgets were, in a few sentences."""
    whole = sum((trials(name) for name in FILES), Counter[str]())
    most = max(labels, key=lambda label: whole[label])
    own = [label for label in labels if whole[label]]
    fewest = min(whole[label] for label in own)
    without = [label for label in labels if not whole[label]]
    least = [label for label in own if whole[label] == fewest]
    text = (
        f" Nor were the recipes tuned alike: their settings were chosen by {counted(fewest, 'run')} ({listed(least)}) to "
        f"{whole[most]} ({most})"
    )
    if without:
        text += f", and by none of {'its' if len(without) == 1 else 'their'} own for {listed(without)}"
    return (
        f"{text}. The last two columns count them: trained on half of the training classes and measured on the other "
        f"(`benchmarks/results/cub-validation.json`), and in folds of all of them (`cub-tuning.json`)."
    )

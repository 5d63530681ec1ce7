"""The page about the plane says what was measured."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from nearkin.plane import LOSSES
from nearkin.plane.command import Plane
from nearkin.plane.show import table

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plane.md").read_text()


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "plane.json").read_text())
    return found


def test_the_table_is_what_was_measured(results: dict[str, Any]) -> None:
    shown = table({LOSSES[name].title: entries for name, entries in results["losses"].items()})
    assert f"```\n{shown}\n```" in PAGE
    ten = results["ten_digits"]
    shown = table({"NRA, 5,000 steps": ten["early"], "NRA, 20,000 steps": ten["late"]})
    assert f"```\n{shown}\n```" in PAGE


def test_the_settings_of_each_loss_are_those_that_the_trials_favour() -> None:
    trials = json.loads((ROOT / "benchmarks" / "results" / "plane-optimizer.json").read_text())
    means: dict[str, dict[tuple[str, float, int], float]] = {}
    for row in trials["rows"]:
        key = (row["optimizer"], row["lr"], row["classes"])
        found = [
            other["map"] for other in trials["rows"] if {**other, "seed": 0, "map": 0} == {**row, "seed": 0, "map": 0}
        ]
        means.setdefault(row["loss"], {})[key] = 100 * float(np.mean(found))
    heads = [f"{optimizer} {lr:g}, {classes} digits" for optimizer, lr, classes in means["nra"]]
    assert "| | " + " | ".join(heads) + " |" in PAGE
    for loss, found in means.items():
        cells = [f"{found[key]:.1f}" if key in found else "" for key in means["nra"]]
        assert f"| `{loss}` | " + " | ".join(cells) + " |" in PAGE
    plain = ("adam", 1e-3, 10)
    for name in set(Plane().names) - {"nra"}:
        assert (LOSSES[name].optimizer, Plane().lr, LOSSES[name].classes) == plain
        assert means[name][plain] >= max(means[name].values()) - 1, name
    # NRA: the batch that was better by more than a point; SGD there, though Adam is ahead, by less than two seeds differ.
    four = means["nra"][("adam", 1e-3, 4)]
    assert four == max(means["nra"].values()) > means["nra"][plain] + 1
    chosen = (LOSSES["nra"].optimizer, Plane().lr, LOSSES["nra"].classes)
    assert chosen == ("sgd", 1e-3, 4)
    seeds = [
        100 * row["map"]
        for row in trials["rows"]
        if (row["loss"], row["optimizer"], row["lr"], row["classes"]) == ("nra", *chosen)
    ]
    assert len(seeds) == 2 and 0 < four - means["nra"][chosen] < max(seeds) - min(seeds)


def test_the_results_are_of_the_commands_own_settings(results: dict[str, Any]) -> None:
    plain = Plane()
    assert tuple(results["losses"]) == plain.names
    for name in ("iterations", "classes", "optimizer", "lr", "points"):
        assert results["settings"][name] == getattr(plain, name), name


def test_the_figure_is_of_the_first_seed(results: dict[str, Any]) -> None:
    root = ElementTree.parse(ROOT / "docs" / "figures" / "plane.svg").getroot()
    texts = [entry.text for entry in root.iter("{http://www.w3.org/2000/svg}text")]
    for name, entries in results["losses"].items():
        title = texts.index(LOSSES[name].title)
        assert texts[title + 1] == f"mAP {100 * entries[0]['map']:.1f} %"
    [early] = results["ten_digits"]["early"]
    assert f"mAP {100 * early['map']:.1f} %" in (ROOT / "docs" / "figures" / "plane-ten-digits.svg").read_text()


def test_every_flag_is_a_field() -> None:
    fields = {field.name.replace("_", "-") for field in dataclasses.fields(Plane)}
    flags = set(re.findall(r"--([a-z-]+[a-z])", PAGE))
    assert flags == fields

"""The page on tuning says what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from nearkin.tune.command import Command
from nearkin.tune.page import page
from nearkin.tune.propose import RANDOM_FIRST
from nearkin.tune.ranges import POINTS
from nearkin.tune.study import DEATHS, PRUNE_AFTER

TEXT = (Path(__file__).parents[2] / "docs" / "tune.md").read_text()


def test_the_table_of_spaces() -> None:
    assert page() in TEXT


def test_every_flag_that_is_named_exists() -> None:
    known = {"--" + field.name.replace("_", "-") for field in fields(Command)}
    assert {flag for flag in re.findall(r"--[a-z][a-z-]+", TEXT) if not flag.startswith("--no-")} <= known


def test_the_numbers() -> None:
    for said in (
        f"then {RANDOM_FIRST - 1} at random",
        f"{POINTS} values of a parameter without steps",
        f"after {PRUNE_AFTER} trials of its loss",
        f"{DEATHS} processes",
    ):
        assert said in TEXT, said

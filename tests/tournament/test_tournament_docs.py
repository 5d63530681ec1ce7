"""The page about tournaments shows what the command prints."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from nearkin import tournament
from nearkin.tournament.command import Tournament, run
from tests.tournament.made import benchmark

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "tournament.md").read_text()


def test_the_table_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    run(Tournament(published="deep_dive"))
    [table] = re.findall(r"```\n(loss .*?)```", PAGE, re.S)
    assert table in capsys.readouterr().out


def test_the_figure_is_up_to_date() -> None:
    figure = tournament.svg(tournament.judge(tournament.printed(), "recall@1"))
    assert (DOCS / "figures" / "tournament.svg").read_text() == figure


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark(tmp_path / "bench" / "birds", {"ranked_list": 1.5, "triplet": 0.2})
    monkeypatch.chdir(tmp_path)
    [code] = [code for code in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "bench/birds" in code]
    names: dict[str, object] = {}
    exec(compile(code, "tournament.md", "exec"), names)
    assert isinstance(names["verdict"], tournament.Verdict)


def test_every_flag_is_a_field() -> None:
    fields = {field.name for field in dataclasses.fields(Tournament)}
    flags = set(re.findall(r"--([a-z]+)", PAGE))
    assert flags and flags <= fields
    assert fields - flags == {"results"}

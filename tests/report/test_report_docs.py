"""The page about reports says what the command does."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from nearkin.report.command import Report
from tests.report.made import Page, benchmark

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "report.md").read_text()


def test_every_flag_is_explained() -> None:
    fields = {field.name for field in dataclasses.fields(Report)} - {"results"}
    assert set(re.findall(r"^\| `--(\w+)", PAGE, re.M)) == fields


def test_every_section_is_explained(characters_out: Path, birds_page: Page) -> None:
    explained = {
        part.strip().lower()
        for line in re.findall(r"^\*\*(.+?)\.\*\*", PAGE, re.M)
        for part in re.split(r", (?!and )", line)
    }
    text = (characters_out / "index.html").read_text()
    titles = {title.lower().replace("&#x27;", "'") for title in re.findall(r'<section id="\w+"><h2>(.*?)</h2>', text)}
    assert len(titles) > 10
    assert titles <= explained


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark(tmp_path / "bench" / "birds", seeds=1)
    monkeypatch.chdir(tmp_path)
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(code, "report.md", "exec"), {})
    assert (tmp_path / "report" / "index.html").exists()

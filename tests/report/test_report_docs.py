"""The page about reports says what the command does."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path

import pytest

from nearkin.report.command import Report
from nearkin.report.script import SCRIPT
from nearkin.report.style import style
from tests.report.made import Page, benchmark

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "report.md").read_text()


def test_the_report_on_birds_is_as_reports_are_made_now() -> None:
    """It is shown to everybody: made again when the look of reports or what they say of birds has changed."""
    page = html.unescape((DOCS / "birds" / "index.html").read_text())
    verdict = re.search(r"^\*\*(By recall@1 .*)\*\*$", (DOCS / "birds.md").read_text(), re.M)
    assert style() in page and SCRIPT in page
    assert verdict is not None and verdict[1] in page


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

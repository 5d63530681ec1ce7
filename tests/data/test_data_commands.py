"""The commands for data, as functions of their flags, and how progress is shown."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest

from nearkin.data import commands
from nearkin.data.show import Lines, shown_progress
from tests.data import layouts
from tests.data.server import Site, serving
from tests.data.test_get import birds


def test_flags_are_fields_with_help() -> None:
    for kind, positional in ((commands.Get, "name"), (commands.Info, "path")):
        for field in dataclasses.fields(kind):
            assert field.metadata["help"] and field.metadata["type"] is str
            assert bool(field.metadata.get("positional")) == (field.name == positional)
    for function in (commands.get, commands.info):
        assert function.__doc__


def test_info_prints_the_description(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands.info(commands.Info(str(layouts.mnist(tmp_path))))
    assert "mnist (MNIST, 70,000 handwritten digits" in capsys.readouterr().out


def test_info_ends_with_1_where_nothing_can_be_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.info(commands.Info(str(layouts.mnist(tmp_path / "digits")))) == 0
    for name in ("a/1.png", "b/2.png"):
        layouts.empty(tmp_path / "broken" / name)
    assert commands.info(commands.Info(str(tmp_path / "broken"))) == 1
    layouts.picture(tmp_path / "one" / "a" / "1.png")
    assert commands.info(commands.Info(str(tmp_path / "one"))) == 1
    assert "there must be at least 2 classes" in capsys.readouterr().out


def test_get_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(Site()) as site:
        birds(site, tmp_path / "made", monkeypatch)
        commands.get(commands.Get("cub200"))
    shown = capsys.readouterr()
    assert "CUB_200_2011.tgz: sha256 as published." in shown.out
    assert shown.out.splitlines()[-1] == "Describe it with: nearkin data info data/cub200"
    assert "download CUB_200_2011.tgz: 0.0 of " in shown.err and "(100%)" in shown.err
    assert (tmp_path / "data" / "cub200" / "CUB_200_2011").is_dir()


def test_a_misspelt_name_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="did you mean 'cub200'"):
        commands.get(commands.Get("cub20"))
    assert list(tmp_path.iterdir()) == []


def test_lines_come_now_and_then_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("nearkin.data.show.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    show = Lines(stream)
    for step in range(101):
        now[0] = step * 0.2
        show("download x", step * 1_000_000, 100_000_000)
    show("download x", 100_000_000, 100_000_000)
    show("unknown", 5_000_000, None)
    assert stream.getvalue().splitlines() == [
        "download x: 0.0 of 100.0 MB (0%)",
        "download x: 25.0 of 100.0 MB (25%)",
        "download x: 50.0 of 100.0 MB (50%)",
        "download x: 75.0 of 100.0 MB (75%)",
        "download x: 100.0 of 100.0 MB (100%)",
        "unknown: 5.0 MB",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_brackets_beside_a_bar_are_shown() -> None:
    """They mean something to what draws the bars."""
    stream = Terminal()
    with shown_progress(stream) as show:
        show("[/x] [red]", 100, 100)
    assert "[/x] [red]" in stream.getvalue()


def test_bars_where_a_person_watches() -> None:
    stream = Terminal()
    with shown_progress(stream) as show:
        show("download x", 10, 100)
        show("download x", 100, 100)
    assert "download x" in stream.getvalue() and "━" in stream.getvalue()

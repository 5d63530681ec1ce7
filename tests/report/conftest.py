"""Benchmarks that several tests look at, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearkin.report import read, write
from tests.report.made import Page, benchmark, trained


@pytest.fixture(scope="session")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One experiment, three losses, two seeds."""
    folder = tmp_path_factory.mktemp("birds")
    benchmark(folder)
    return folder


@pytest.fixture(scope="session")
def birds_page(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    out = tmp_path_factory.mktemp("birds-report")
    write(read(birds), out, formats=())
    return Page((out / "index.html").read_text())


@pytest.fixture(scope="session")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two losses trained on characters, with images and weights."""
    folder = tmp_path_factory.mktemp("characters")
    trained(folder)
    return folder


@pytest.fixture(scope="session")
def characters_out(characters: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on them."""
    out = tmp_path_factory.mktemp("characters-report")
    write(read(characters, queries=3, points=40, cache=out / "cache"), out, formats=("svg",))
    return out

"""Data sets by name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from nearkin import data
from nearkin.data import DATASETS, load
from tests.data import layouts


def test_every_data_set_of_the_package_is_there() -> None:
    assert set(DATASETS) == {"cub200", "cars196", "sop", "inshop", "mnist", "glyphs", "folder", "table"}
    for name, entry in DATASETS.items():
        assert entry.function is getattr(data, name)
        assert entry.description and entry.function.__doc__
        assert entry.needs_root == (name != "glyphs")


def test_published_sizes() -> None:
    """The figures that the papers give."""
    counts = {name: entry.counts for name, entry in DATASETS.items() if entry.counts is not None}
    assert {name: (c.train_images, c.train_classes, c.test_images, c.test_classes) for name, c in counts.items()} == {
        "cub200": (5864, 100, 5924, 100),
        "cars196": (8054, 98, 8131, 98),
        "sop": (59551, 11318, 60502, 11316),
        "inshop": (25882, 3997, 26830, 3985),
        "mnist": (60000, 10, 10000, 10),
    }
    assert counts["cub200"].images == 11_788 and counts["cars196"].images == 16_185
    assert counts["sop"].images == 120_053 and counts["inshop"].images == 52_712 and counts["inshop"].queries == 14_218


def test_official_files_are_well_formed() -> None:
    for name, entry in DATASETS.items():
        assert bool(entry.sources) == (entry.counts is not None)
        for source in entry.sources:
            for remote in source:
                assert remote.addresses or entry.by_hand, name
                for address in remote.addresses:
                    assert urlsplit(address).scheme in ("http", "https") and urlsplit(address).hostname
                for checksum, length in ((remote.sha256, 64), (remote.md5, 32)):
                    assert checksum is None or re.fullmatch(f"[0-9a-f]{{{length}}}", checksum)
                if remote.addresses:
                    assert remote.sha256 and remote.size, "what is downloaded is verified"


def test_loading_by_name(tmp_path: Path) -> None:
    layouts.cub200(tmp_path)
    assert load("cub200", tmp_path, check_counts=False).name == "cub200"
    assert load("glyphs", classes=4, images=2).name == "glyphs"
    layouts.picture(tmp_path / "own" / "a" / "1.png")
    layouts.picture(tmp_path / "own" / "b" / "1.png")
    assert load("folder", str(tmp_path / "own"), split="all").name == "folder"


@pytest.mark.parametrize(
    ("name", "root", "options", "message"),
    [
        ("cub-200", None, {}, r"data set 'cub-200' is not known; did you mean 'cub200'\?"),
        ("zzz", None, {}, r"data set 'zzz' is not known; choose one of cars196, cub200, folder, glyphs, inshop, mnist"),
        ("cub200", "x", {"check_count": False}, r"option of cub200 'check_count' is not .*; did you mean 'check_counts'\?"),
        ("cub200", "x", {"root2": "y"}, r"option of cub200 'root2' is not known; choose one of check_counts\."),
        ("cub200", None, {}, r"cub200: root must be the folder that holds it, got none; pass root, or run nearkin data get"),
        ("folder", "", {}, r"folder: root must be the folder that holds it, got none; pass root\."),
        ("table", None, {}, r"table: root must be the CSV or Parquet file, got none; pass root\."),
        ("glyphs", "x", {}, r"glyphs: root must be left out, since it is made here, got 'x'; drop it\."),
    ],
)  # fmt: skip
def test_errors_of_loading(name: str, root: str | None, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(name, root, **options)


def test_importing_the_data_sets_is_light() -> None:
    heavy = ("matplotlib", "PIL", "scipy", "pyarrow", "rich", "pandas", "sklearn")
    script = (
        "import torch, sys; before = set(sys.modules); import nearkin.data; "
        f"print([name for name in {heavy!r} if name in set(sys.modules) - before])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_loading_asks_the_network_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    layouts.cub200(tmp_path)
    load("cub200", tmp_path, check_counts=False)


def test_the_page_has_every_data_set_with_its_published_size() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    for name, entry in DATASETS.items():
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}` |") and line.count("|") == 5)
        if entry.counts is not None:
            assert f"| {entry.counts.train_images:,} images of {entry.counts.train_classes:,} classes |" in row
            assert f"| {entry.counts.test_images:,} images of " in row

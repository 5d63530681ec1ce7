"""Which files count as images, in which order, and which listed ones are there."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nearkin.data.files import (
    ListedFiles,
    image_extensions,
    images_below,
    naming,
    natural,
    pictures,
    readable,
    subfolders,
)
from tests.data.layouts import empty, picture


def test_numbers_count_as_numbers() -> None:
    names = ["b10", "b9", "a", "B1", "b09", "10", "9", "b9x2", "b9x10"]
    assert sorted(names, key=natural) == ["9", "10", "a", "B1", "b09", "b9", "b9x2", "b9x10", "b10"]


@settings(deadline=None)
@given(st.lists(st.text(alphabet="aB10²五٣_. ", max_size=6)), st.randoms(use_true_random=False))
def test_any_names_have_an_order_that_does_not_depend_on_where_they_stood(
    names: list[str], draw: random.Random
) -> None:
    shuffled = list(names)
    draw.shuffle(shuffled)
    assert sorted(shuffled, key=natural) == sorted(names, key=natural)


def test_names_are_given_in_part() -> None:
    assert naming([]) == ""
    assert naming(["a"]) == "a"
    assert naming(["a", "b", "c"]) == "a, b and c"
    assert naming([str(number) for number in range(1_300)]) == "0, 1, 2 and 1,297 more"


def test_every_format_that_pillow_writes_and_reads_is_found(tmp_path: Path) -> None:
    """Independent truth: Pillow opens the file."""
    extensions = image_extensions()
    image = Image.new("RGB", (8, 8), (10, 200, 30))
    tried = 0
    for ending, kind in Image.registered_extensions().items():
        path = tmp_path / f"image{ending}"
        for mode in ("RGB", "L", "1"):
            try:
                image.convert(mode).save(path, kind)
                break
            except (OSError, KeyError, ValueError, AttributeError):
                continue
        else:
            continue
        try:
            with Image.open(path) as opened:
                opened.load()
        except (OSError, SyntaxError):
            assert ending in (".pdf", ".palm", ".eps", ".ps") or ending not in extensions, ending
            continue
        tried += 1
        assert ending in extensions, ending
    assert tried > 25
    assert not {".pdf", ".mpg", ".h5", ".txt"} & extensions
    assert len(images_below(tmp_path, extensions).images) >= tried


def test_hidden_files_others_and_broken_links_are_left_out_and_counted(tmp_path: Path) -> None:
    kept = [empty(tmp_path / name) for name in ("a.JPG", "b c.png", "deep/er/c.webp", "ünï/日本.jpeg")]
    for name in (".hidden.jpg", ".git/d.jpg", "__MACOSX/e.jpg", "deep/._f.jpg"):
        empty(tmp_path / name)
    for name in ("notes.txt", "deep/data.csv", "jpg"):
        empty(tmp_path / name)
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    found = images_below(tmp_path, image_extensions())
    assert sorted(found.images) == sorted(kept)
    assert (found.others, found.broken) == (4, 1)


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    empty(tmp_path / "store" / "x.png")
    root = tmp_path / "root"
    empty(root / "cat" / "a.png")
    (root / "dog").symlink_to(tmp_path / "store", target_is_directory=True)
    (root / "cat" / "b.png").symlink_to(tmp_path / "store" / "x.png")
    (root / "cat" / "up").symlink_to(root, target_is_directory=True)
    found = images_below(root, image_extensions())
    names = sorted(str(path.relative_to(root)) for path in found.images)
    assert names == ["cat/a.png", "cat/b.png", "dog/x.png"]
    assert subfolders(root) == ["cat", "dog"]


def test_a_name_that_is_no_text_can_be_shown(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.png")
    if sys.platform == "darwin":
        pytest.skip("file names are text there")
    empty(tmp_path / name)
    (path,) = images_below(tmp_path, image_extensions()).images
    assert path.exists()
    readable(path.name).encode("utf-8")
    assert readable("naïve") == "naïve"


def test_listed_files_are_found_also_in_another_format(tmp_path: Path) -> None:
    empty(tmp_path / "birds" / "one.jpg")
    empty(tmp_path / "birds" / "two.webp")
    empty(tmp_path / "birds" / "three.txt")
    files = ListedFiles(tmp_path)
    assert files.find("birds/one.jpg") == tmp_path / "birds" / "one.jpg"
    assert files.find("birds/two.jpg") == tmp_path / "birds" / "two.webp"
    assert files.find("birds/three.jpg") is None
    assert files.find("fish/one.jpg") is None


def test_pictures_of_a_folder_or_one_file(tmp_path: Path) -> None:
    one, two = picture(tmp_path / "a.png"), picture(tmp_path / "deep" / "b.png")
    assert pictures(tmp_path) == (one, two)
    assert pictures(one) == (one,)
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"path must hold images, got none in .*; pass a folder with images"):
        pictures(tmp_path / "none")
    with pytest.raises(ValueError, match="which does not exist"):
        pictures(tmp_path / "gone")


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ValueError, match=f"folder {tmp_path} must be readable, got a refusal; change its permissions"):
        images_below(tmp_path, frozenset())

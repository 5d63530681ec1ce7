"""What `info` says of what it finds."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from nearkin import advice
from nearkin.data import describe, info
from nearkin.data.info import recognise
from tests.data import layouts
from tests.data.test_cars196 import devkit, one_list


def test_a_folder_per_class(tmp_path: Path) -> None:
    for name, count in (("a", 1), ("b", 2), ("c", 6), ("d d", 3)):
        for number in range(count):
            layouts.picture(tmp_path / name / f"{number}.{'png' if number else 'webp'}", size=(10 + number, 8))
    layouts.empty(tmp_path / "a" / "notes.txt")
    found = info(tmp_path)
    assert (found.name, found.layout) == ("folder", "a folder per class")
    assert (found.images, found.classes, found.per_class) == (12, 4, (1, 2.5, 6))
    assert found.formats == {"png": 8, "webp": 4}
    assert found.bytes == sum(path.stat().st_size for path in tmp_path.rglob("*") if path.suffix in (".png", ".webp"))
    assert len(found.sizes) == 12 and max(found.sizes) == (15, 8)
    assert found.parts is not None and found.parts.train_images == 3
    text = describe(found)
    assert text.splitlines() == [
        str(tmp_path),
        "  what        folder (your own images, a folder per class): a folder per class",
        f"  images      12 in 4 classes, {found.bytes} bytes",
        "  per class   1 to 6, median 2.5",
        "  formats     png 8, webp 4",
        "  pixels      11 x 8 in the middle, widths 10 to 15, heights 8 to 8 (of 12 looked at)",
        "  train       3 images of 2 classes",
        "  test        9 images of 2 classes",
        f"  note        1 file below {tmp_path} is no image and was left out.",
        "  note        1 training class has one image (a): it forms no positive pair.",
        f"  next        {advice.training('--data', 'folder', '--root', tmp_path)}",
    ]


def test_only_a_sample_is_looked_at(tmp_path: Path) -> None:
    for number in range(30):
        layouts.picture(tmp_path / "ab"[number % 2] / f"{number}.png")
    assert len(info(tmp_path, sample=7).sizes) == 7


def test_unreadable_images_of_the_sample_are_named(tmp_path: Path) -> None:
    layouts.picture(tmp_path / "a" / "1.png")
    layouts.empty(tmp_path / "b" / "2.png")
    found = info(tmp_path)
    assert found.unreadable == (str(tmp_path / "b" / "2.png"),)
    assert f"  unreadable  1 of 2 looked at: {tmp_path / 'b' / '2.png'}" in describe(found)


def test_images_that_cannot_be_read_are_not_trained_on(tmp_path: Path) -> None:
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
        layouts.empty(tmp_path / name)
    found = info(tmp_path)
    assert found.next.endswith(f" data check {tmp_path}") and not found.usable


def test_the_benchmarks_are_recognised(tmp_path: Path) -> None:
    layouts.cub200(tmp_path / "cub")
    layouts.class_folders(tmp_path / "birds", layouts.BIRDS.values())
    one_list(tmp_path / "cars", {1: 1, 99: 1})
    devkit(tmp_path / "cars2", [1], [99])
    layouts.class_folders(tmp_path / "cars3", ["001.AM General Hummer SUV 2000", "099.FIAT 500 Abarth 2012"])
    layouts.sop(tmp_path / "sop", {"train": [(1, 1, "a_final/1.JPG")], "test": [(2, 1, "a_final/2.JPG")]})
    layouts.inshop(tmp_path / "inshop", [("img/a.jpg", "1", "train"), ("img/b.jpg", "2", "query")])
    layouts.mnist(tmp_path / "mnist")
    layouts.class_folders(tmp_path / "mine", ["001.first", "002.second"])
    layouts.picture(tmp_path / "parts" / "train" / "x" / "1.png")
    layouts.picture(tmp_path / "parts" / "test" / "y" / "1.png")
    wanted = {
        "cub": ("cub200", "official archive"),
        "birds": ("cub200", "class folders"),
        "cars": ("cars196", "official archive, one list"),
        "cars2": ("cars196", "official archive, development kit"),
        "cars3": ("cars196", "class folders"),
        "sop": ("sop", "official archive"),
        "inshop": ("inshop", "official archive"),
        "mnist": ("mnist", "official idx files"),
        "mine": ("folder", "a folder per class"),
        "parts": ("folder", "parts with a folder per class"),
    }
    assert {name: recognise(tmp_path / name) for name in wanted} == wanted


def test_mismatches_are_said(tmp_path: Path) -> None:
    layouts.cub200(tmp_path)
    text = describe(info(tmp_path))
    assert "train       6 images of 2 classes, not as published" in text
    assert "note        not as published: no image of classes 003.Sooty_Albatross, 004.Groove_billed_Ani, 005" in text
    assert (
        "next        nearkin data get cub200 --root DIR, an empty folder; or load what is there with check_counts"
        in text
    )
    assert "formats     jpg 12" in text and "pixels      8 x 6\n" in text


def test_digits_and_queries(tmp_path: Path) -> None:
    text = describe(info(layouts.mnist(tmp_path / "mnist")))
    assert "both parts share classes" in text and "30 in 10 classes" in text and "per class   3 to 3" in text
    layouts.inshop(
        tmp_path / "shop", [("img/a.jpg", "1", "train"), ("img/b.jpg", "2", "query"), ("img/c.jpg", "2", "gallery")]
    )
    assert "test        2 images of 1 class, 1 of them queries, not as published" in describe(info(tmp_path / "shop"))


def test_tables(tmp_path: Path) -> None:
    layouts.picture(tmp_path / "1.png")
    layouts.picture(tmp_path / "2.png")
    layouts.lines(tmp_path / "x.csv", ["path,label", "1.png,a", "2.png,b"])
    found = info(tmp_path / "x.csv")
    assert (found.name, found.layout, found.images) == ("table", "CSV table", 2)
    layouts.lines(tmp_path / "y.csv", ["path,label", "1.png,a", "3.png,b"])
    found = info(tmp_path / "y.csv")
    assert found.name == "" and "path must name a file, got 1 missing, in line 3 (3.png)" in describe(found)


def test_what_cannot_be_loaded_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "void").mkdir()
    assert "next        pass a folder of images or a CSV table" in describe(info(tmp_path / "void"))
    layouts.picture(tmp_path / "flat" / "1.png")
    assert "images without class folders\n  next        move the images of each class" in describe(
        info(tmp_path / "flat")
    )
    archive = tmp_path / "packed" / "x.tar"
    archive.parent.mkdir()
    tarfile.open(archive, "w").close()
    assert f'next        unpack it: nearkin.data.extract("{archive}", FOLDER)' in describe(info(archive))
    assert "next        unpack x.tar: nearkin.data.extract(ARCHIVE, FOLDER)" in describe(info(archive.parent))
    layouts.empty(tmp_path / "got it" / "CUB_200_2011.tgz")
    assert f"next        nearkin data get cub200 --root '{tmp_path / 'got it'}'" in describe(info(tmp_path / "got it"))
    with pytest.raises(ValueError, match=r"path must exist, got .*gone, which does not; check the path\."):
        info(tmp_path / "gone")
    layouts.picture(tmp_path / "one" / "only" / "1.png")
    assert "there must be at least 2 classes" in describe(info(tmp_path / "one"))

"""CUB-200-2011 in its official layout and as class folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import Splits, cub200
from nearkin.data.class_sizes import CUB200
from tests.data.layouts import BIRDS, class_folders, empty, lines, picture
from tests.data.layouts import cub200 as make


def facts(splits: Splits) -> list[tuple[str, str, int]]:
    return [
        (Path(str(image)).stem, part.class_names[label], int(label))
        for part in (splits.train, splits.test)
        for image, label in zip(part.images, part.labels, strict=True)
    ]


def test_the_sizes_of_the_classes_are_the_published_ones() -> None:
    sizes = list(CUB200.values())
    assert len(sizes) == 200
    assert (sum(sizes[:100]), sum(sizes[100:])) == (5_864, 5_924)
    assert next(iter(CUB200)) == "001.Black_footed_Albatross" and list(CUB200)[199] == "200.Common_Yellowthroat"


@pytest.mark.parametrize("inside", ["", "CUB_200_2011", "CUB_200_2011/images"])
def test_the_official_layout_from_any_of_its_folders(tmp_path: Path, inside: str) -> None:
    make(tmp_path)
    splits = cub200(tmp_path / inside, check_counts=False)
    assert splits.train.class_names == (BIRDS[1], BIRDS[2])
    assert splits.test.class_names == (BIRDS[101], BIRDS[200])
    assert splits.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert splits.name == "cub200" and splits.disjoint
    assert all(Path(str(image)).is_file() for image in splits.train.images)


@pytest.mark.parametrize("ending", [".webp", ".png", ".JPG"])
@pytest.mark.parametrize("inside", ["", "images", "CUB_200_2011/images", "anything", "anything/images"])
def test_class_folders_give_the_rows_of_the_official_layout(tmp_path: Path, inside: str, ending: str) -> None:
    make(tmp_path / "official")
    class_folders(tmp_path / "plain" / inside, BIRDS.values(), ending=ending)
    official = cub200(tmp_path / "official", check_counts=False)
    plain = cub200(tmp_path / "plain", check_counts=False)
    assert facts(plain) == facts(official)


def test_official_lists_with_images_stored_in_another_format(tmp_path: Path) -> None:
    make(tmp_path / "webp", ending=".webp")
    make(tmp_path / "jpg")
    found = cub200(tmp_path / "webp", check_counts=False)
    assert facts(found) == facts(cub200(tmp_path / "jpg", check_counts=False))
    assert all(Path(str(image)).suffix == ".webp" and Path(str(image)).is_file() for image in found.train.images)


def test_class_numbers_decide_the_halves_not_what_is_missing(tmp_path: Path) -> None:
    names = ["099.Ovenbird", "100.Brown_Pelican", "101.White_Pelican"]
    splits = cub200(class_folders(tmp_path, names), check_counts=False)
    assert splits.train.class_names == ("099.Ovenbird", "100.Brown_Pelican")
    assert splits.test.class_names == ("101.White_Pelican",)
    assert splits.test.labels.tolist() == [0, 0, 0]


def test_one_half_may_be_all_there_is(tmp_path: Path) -> None:
    splits = cub200(class_folders(tmp_path, [BIRDS[1]]), check_counts=False)
    assert len(splits.train) == 3 and len(splits.test) == 0


def whole(root: Path) -> Path:
    """All 200 classes with as many files as published, all empty."""
    for name, count in CUB200.items():
        (root / name).mkdir(parents=True)
        for number in range(count):
            (root / name / f"{number}.jpg").touch()
    return root


def test_a_whole_copy_passes_and_a_short_one_names_what_is_missing(tmp_path: Path) -> None:
    whole(tmp_path)
    splits = cub200(tmp_path)
    assert (len(splits.train), len(splits.test)) == (5_864, 5_924)
    assert (len(splits.train.class_names), len(splits.test.class_names)) == (100, 100)
    assert splits.notes == ()

    for name in ("005.Crested_Auklet/0.jpg", "005.Crested_Auklet/1.jpg", "150.Sage_Thrasher/9.jpg"):
        (tmp_path / name).unlink()
    shutil.rmtree(tmp_path / "013.Bobolink")
    empty(tmp_path / "200.Common_Yellowthroat" / "extra.png")
    with pytest.raises(ValueError) as caught:
        cub200(tmp_path)
    assert str(caught.value) == (
        f"cub200: root must hold the published 11,788 images, got 11,726 in {tmp_path}: no image of class 013.Bobolink; "
        "005.Crested_Auklet lacks 2 of its 44 images and 150.Sage_Thrasher lacks 1 of its 60 images; "
        "200.Common_Yellowthroat has 1 image too many; train has 5,802 of 5,864 images and 99 of 100 classes; "
        "unpack the archive again, into an empty folder, or run nearkin data get cub200 --root DIR, or pass "
        "check_counts=False to load what is there."
    )
    loaded = cub200(tmp_path, check_counts=False)
    assert len(loaded.train) == 5_802
    assert np.array_equal(np.unique(loaded.train.labels), np.arange(99))
    assert "not as published: no image of class 013.Bobolink." in loaded.notes


def test_many_missing_classes_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no image of classes 003\.Sooty_Albatross, 004\..*, 005\..* and 193 more; "):
        cub200(class_folders(tmp_path, BIRDS.values()))


def test_listed_files_that_are_missing_are_named(tmp_path: Path) -> None:
    base = make(tmp_path)
    for count in range(2):
        (base / "images" / BIRDS[1] / f"Black_footed_Albatross_000{count}_{count}.jpg").unlink()
    with pytest.raises(
        ValueError, match=rf"2 listed files are missing, such as {BIRDS[1]}/Black_footed_Albatross_0001_1"
    ):
        cub200(tmp_path)
    splits = cub200(tmp_path, check_counts=False)
    assert len(splits.train) == 4
    assert splits.notes[0].startswith("not as published: 2 listed files are missing, such as ")


def test_a_root_of_cars_is_noticed(tmp_path: Path) -> None:
    names = ["001.AM General Hummer SUV 2000", "101.Ferrari FF Coupe 2012"]
    with pytest.raises(ValueError, match=r"no class has a published name \(001\.AM General .* for 001\.Black_footed_"):
        cub200(class_folders(tmp_path, names))


def test_numbers_out_of_range_or_twice(tmp_path: Path) -> None:
    class_folders(tmp_path / "far", ["201.Dodo"])
    with pytest.raises(
        ValueError, match=r"class folders must be numbered from 1 to 200, got 201\.Dodo in .*; pass the root"
    ):
        cub200(tmp_path / "far", check_counts=False)
    class_folders(tmp_path / "twice", ["001.Dodo", "1.Dodo"])
    with pytest.raises(
        ValueError, match=r"each class number must have one folder, got 001\.Dodo and 1\.Dodo in .*; keep"
    ):
        cub200(tmp_path / "twice", check_counts=False)


def test_other_files_beside_the_images_are_noted(tmp_path: Path) -> None:
    class_folders(tmp_path, BIRDS.values())
    empty(tmp_path / BIRDS[1] / "Thumbs.db")
    (tmp_path / "attributes").mkdir()
    (tmp_path / BIRDS[2] / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    splits = cub200(tmp_path, check_counts=False)
    assert splits.notes[:2] == (
        "1 file in the class folders is no image and was left out.",
        "1 link to an image leads nowhere and was left out.",
    )
    assert len(splits.train) == 6


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("images.txt", "nonsense", r"images\.txt, line 13, must have 2 words, got 'nonsense'; unpack the list again"),
        ("image_class_labels.txt", "13 x", r"classes in .*labels\.txt must be numbers from 1 to 200, got 'x'; unpack"),
        ("classes.txt", "300 300.Dodo", r"classes in .*classes\.txt must be numbers from 1 to 200, got '300'; unpack"),
    ],
)
def test_broken_lists_name_file_and_line(file: str, line: str, message: str, tmp_path: Path) -> None:
    base = make(tmp_path)
    lines(base / file, [*(base / file).read_text().splitlines(), line])
    with pytest.raises(ValueError, match=message):
        cub200(tmp_path, check_counts=False)


def test_an_image_without_a_class_is_named(tmp_path: Path) -> None:
    base = make(tmp_path)
    lines(base / "image_class_labels.txt", (base / "image_class_labels.txt").read_text().splitlines()[:-1])
    with pytest.raises(ValueError, match=r"image_class_labels\.txt has no class for 200\.Common_Yellowthroat/Common_"):
        cub200(tmp_path)


def test_roots_without_the_data(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"cub200: root must hold CUB_200_2011/ .*, got an empty folder in .*; pass the"
    ):
        cub200(tmp_path)
    picture(tmp_path / "cats" / "x.jpg")
    with pytest.raises(ValueError, match=r"got cats/ in .*or run nearkin data get cub200 --root DIR\."):
        cub200(tmp_path)
    empty(tmp_path / "cub200-0.tar")
    with pytest.raises(
        ValueError, match=r"got only packed archives in .* \(cub200-0\.tar\); unpack them first, with nearkin"
    ):
        cub200(tmp_path)
    with pytest.raises(
        ValueError, match=r"cub200: root must be a folder, got .*, which does not exist; check the path\."
    ):
        cub200(tmp_path / "gone")


def test_empty_class_folders(tmp_path: Path) -> None:
    (tmp_path / BIRDS[1]).mkdir()
    with pytest.raises(ValueError, match=r"cub200: root must hold images, got none that can be found in"):
        cub200(tmp_path, check_counts=False)

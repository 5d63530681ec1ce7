"""A folder per class just works."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import Splits, folder
from nearkin.data.folder import find_parts
from tests.data.layouts import empty, picture


def classes(root: Path, names: dict[str, int], ending: str = ".png") -> Path:
    for name, count in names.items():
        for number in range(count):
            empty(root / name / f"{number}{ending}")
    return root


def by_class(splits: Splits) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in (splits.train, splits.test):
        for image, label in zip(part.images, part.labels, strict=True):
            found.setdefault(part.class_names[label], []).append(Path(str(image)).name)
    return found


def test_the_first_half_in_natural_order_trains(tmp_path: Path) -> None:
    splits = folder(classes(tmp_path, {"bird 10": 2, "bird 2": 3, "ant": 2, "Cow": 4}))
    assert splits.train.class_names == ("ant", "bird 2")
    assert splits.test.class_names == ("bird 10", "Cow")
    assert splits.train.labels.tolist() == [0, 0, 1, 1, 1]
    assert splits.disjoint and splits.name == "folder" and splits.notes == ()
    assert all(isinstance(image, Path) and image.is_file() for image in splits.test.images)


def test_of_an_odd_number_of_classes_more_train(tmp_path: Path) -> None:
    splits = folder(classes(tmp_path, dict.fromkeys("abcde", 2)))
    assert (splits.train.class_names, splits.test.class_names) == (("a", "b", "c"), ("d", "e"))


@pytest.mark.parametrize(("share", "test"), [(0.2, 2), (0.01, 1), (0.99, 9), (0.5, 5)])
def test_the_share_of_test_classes(tmp_path: Path, share: float, test: int) -> None:
    splits = folder(classes(tmp_path, {f"{number}": 2 for number in range(10)}), test_share=share)
    assert len(splits.test.class_names) == test and len(splits.train.class_names) == 10 - test


def test_random_trees_give_what_a_plain_walk_finds(tmp_path: Path) -> None:
    """Independent truth: os.walk and a list of endings."""
    draw = random.Random(0)
    for number in range(12):
        for image in range(draw.randint(1, 6)):
            depth = "/".join(draw.choices(["x", "y z", "ß"], k=draw.randint(0, 3)))
            ending = draw.choice([".jpg", ".JPEG", ".Png", ".webp", ".txt", ".gif", ".bmp", ""])
            empty(tmp_path / f"class {number}" / depth / f"{image}{ending}")
    wanted: Counter[str] = Counter()
    for place, _, files in os.walk(tmp_path):
        for name in files:
            if name.lower().endswith((".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")):
                wanted[Path(place).relative_to(tmp_path).parts[0]] += 1
    found = by_class(folder(tmp_path))
    assert {name: len(images) for name, images in found.items()} == dict(wanted)


def test_train_and_test_folders_are_the_parts(tmp_path: Path) -> None:
    classes(tmp_path / "Train", {"a": 2, "b": 2})
    classes(tmp_path / "test", {"c": 2, "d": 3})
    splits = folder(tmp_path)
    assert splits.disjoint
    assert (splits.train.class_names, splits.test.class_names) == (("a", "b"), ("c", "d"))
    assert splits.test.labels.tolist() == [0, 0, 1, 1, 1]


def test_folders_without_images_beside_the_parts_are_left_out(tmp_path: Path) -> None:
    classes(tmp_path, {"train/a": 2, "train/b": 2, "test/c": 2, "test/d": 2})
    empty(tmp_path / "raw" / "list.txt")
    (tmp_path / "old").mkdir()
    splits = folder(tmp_path)
    assert (splits.train.class_names, splits.test.class_names) == (("a", "b"), ("c", "d"))
    assert splits.notes == ("old and raw beside the parts hold no image.",)
    assert find_parts(tmp_path) == {"train": "train", "test": "test"}


@pytest.mark.parametrize("others", [{"raw": 2}, {"raw/deep/inside": 1}])
def test_classes_that_are_called_as_parts_are_doubted(tmp_path: Path, others: dict[str, int]) -> None:
    splits = folder(classes(tmp_path, {"train/a": 2, "train/b": 2, "test/c": 2, **others}))
    assert set(splits.train.class_names + splits.test.class_names) == {"raw", "test", "train"}
    assert (
        "test and train were taken as classes, not as parts: parts hold a folder per class each, and no other folder "
        "with images lies beside them."
    ) in splits.notes


def test_a_class_of_trains_is_not_doubted(tmp_path: Path) -> None:
    assert folder(classes(tmp_path, {"car": 2, "train": 2})).notes == (
        "the training part has one class, so no image has a negative.",
    )


def test_classes_in_both_parts_keep_one_number(tmp_path: Path) -> None:
    classes(tmp_path / "train", {"b": 2, "d": 2})
    classes(tmp_path / "test", {"a": 2, "b": 2, "d": 2})
    splits = folder(tmp_path)
    assert not splits.disjoint
    assert splits.train.class_names == ("b", "d")
    assert splits.test.class_names == ("b", "d", "a")
    assert splits.test.labels.tolist() == [2, 2, 0, 0, 1, 1]
    assert splits.notes == (
        "2 classes are in both parts, such as b and d: the test does not measure classes that training never saw.",
    )


def test_val_tests_where_there_is_no_test_and_is_left_out_where_there_is(tmp_path: Path) -> None:
    classes(tmp_path / "train", {"a": 2})
    classes(tmp_path / "val", {"b": 2})
    assert folder(tmp_path).test.class_names == ("b",)
    classes(tmp_path / "test", {"c": 2})
    splits = folder(tmp_path)
    assert splits.test.class_names == ("c",)
    assert splits.notes[0].startswith("val/ was left out: validation classes are taken from the training classes")


def test_trains_may_be_a_class(tmp_path: Path) -> None:
    classes(tmp_path, {"train": 2, "test": 2, "tram": 2, "bus": 2})
    splits = folder(tmp_path)
    assert splits.train.class_names + splits.test.class_names == ("bus", "test", "train", "tram")
    only = classes(tmp_path / "two", {"train": 2, "test": 2})
    assert folder(only).test.class_names == ("train",)
    layered = classes(tmp_path / "three", {"train/steam": 2, "test/steam": 2, "bus": 2})
    assert set(folder(layered).train.class_names) == {"bus", "test"} and folder(layered).disjoint


def test_halves_can_be_asked_for_where_parts_lie(tmp_path: Path) -> None:
    classes(tmp_path / "train", {"a": 2})
    classes(tmp_path / "test", {"b": 2})
    assert folder(tmp_path, split="halves").train.class_names == ("test",)


def test_all_images_in_both_parts(tmp_path: Path) -> None:
    splits = folder(classes(tmp_path, {"a": 2, "b": 3}), split="all")
    assert not splits.disjoint
    assert len(splits.train) == len(splits.test) == 5
    assert np.array_equal(splits.train.labels, splits.test.labels)
    assert splits.notes == (
        "every image is in both parts: the test says nothing about classes that training never saw.",
    )


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    classes(tmp_path, {"a": 2, "b": 1, "c": 1, "d": 2})
    empty(tmp_path / "readme.md")
    empty(tmp_path / "loose.jpg")
    empty(tmp_path / "a" / "labels.csv")
    (tmp_path / "a" / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "void").mkdir()
    splits = folder(tmp_path)
    assert splits.notes == (
        f"2 files lie in {tmp_path} outside any class folder and were left out.",
        f"1 file below {tmp_path} is no image and was left out.",
        f"1 link below {tmp_path} leads nowhere and was left out.",
        "1 folder holds no image and is no class: void.",
        "1 training class has one image (b): it forms no positive pair.",
        "1 test class has one image (c): there is nothing to find for it.",
    )


def test_one_training_class_is_said(tmp_path: Path) -> None:
    assert folder(classes(tmp_path, {"a": 2, "b": 2})).notes == (
        "the training part has one class, so no image has a negative.",
    )


def test_names_of_any_script_and_links_to_folders(tmp_path: Path) -> None:
    root = tmp_path / "my photos"
    classes(root, {"猫": 2, "größe": 2, "a b": 2})
    classes(tmp_path / "elsewhere", {"z": 2})
    (root / "zz").symlink_to(tmp_path / "elsewhere" / "z", target_is_directory=True)
    splits = folder(str(root))
    assert set(splits.train.class_names + splits.test.class_names) == {"猫", "größe", "a b", "zz"}


def test_no_image_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("an image was opened")

    picture(tmp_path / "a" / "1.png")
    picture(tmp_path / "b" / "1.png")
    monkeypatch.setattr(Image, "open", refuse)
    assert len(folder(tmp_path).train) == 1


@pytest.mark.parametrize(
    ("made", "options", "message"),
    [
        ([], {}, r"folder: root must hold a folder of images per class, got none in .*; check the path\."),
        (["x.jpg", "y.jpg"], {}, r"got none in .*; 2 images lie directly in it: move those of each class into a folder"),
        (["a/x.jpg"], {}, r"folder: there must be at least 2 classes, .* got only 'a'; add classes, or pass split='all' "
         r"\(--data-settings split=all\) where nothing is trained\."),
        (["a/x.jpg", "b/x.jpg"], {"split": "half"}, r"folder: split must be 'auto' or 'parts' or .*, got 'half'; choose"),
        (["a/x.jpg", "b/x.jpg"], {"split": "parts"}, r"root must hold train/ and test/ .*, got a and b in .*; "
         r"pass split='halves' \(--data-settings split=halves\) to split by class\."),
        (["a/x.jpg", "b/x.jpg"], {"test_share": 1.0}, r"folder: test_share must be a finite number above 0 and below 1, "),
        (["train/a/x.jpg", "test/a/x.txt"], {}, r"folder: .*test must hold images in a folder per class, got none; add"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(made: list[str], options: dict[str, object], message: str, tmp_path: Path) -> None:
    for name in made:
        empty(tmp_path / name)
    with pytest.raises(ValueError, match=message):
        folder(tmp_path, **options)  # type: ignore[arg-type]


def test_a_root_that_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"folder: root must be a folder, got .*gone, which does not exist; check"):
        folder(tmp_path / "gone")
    with pytest.raises(ValueError, match=r"got the file .*x\.zip; unpack it first\."):
        folder(empty(tmp_path / "x.zip"))
    (tmp_path / "all.csv").write_text("path,label\n")
    with pytest.raises(
        ValueError, match=r"root must be a folder, got the table .*all\.csv; read it with --data table\."
    ):
        folder(tmp_path / "all.csv")
    with pytest.raises(ValueError, match=r"got the file .*x\.jpg; pass the folder that holds the images\."):
        folder(empty(tmp_path / "x.jpg"))

"""Stanford Online Products in its official layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearkin.data import sop
from tests.data.layouts import lines
from tests.data.layouts import sop as make

ROWS = {
    "train": [(1, 1, "bicycle_final/11_0.JPG"), (1, 1, "bicycle_final/11_1.JPG"), (2, 2, "cabinet_final/12_0.JPG")],
    "test": [(11319, 1, "bicycle_final/13_0.JPG"), (11320, 12, "toaster_final/14_0.JPG")],
}


@pytest.mark.parametrize("inside", ["", "Stanford_Online_Products"])
def test_the_official_lists(tmp_path: Path, inside: str) -> None:
    make(tmp_path, ROWS)
    splits = sop(tmp_path / inside, check_counts=False)
    assert splits.train.class_names == ("1", "2") and splits.test.class_names == ("11319", "11320")
    assert splits.train.labels.tolist() == [0, 0, 1]
    assert splits.train.super_classes == ("bicycle", "cabinet")
    assert splits.test.super_classes == ("bicycle", "toaster")
    assert splits.name == "sop" and splits.disjoint
    assert all(Path(str(image)).is_file() for image in splits.train.images)


def test_a_copy_of_the_published_size_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows as published; the files are names only, since making 120,053 takes longer than reading them."""
    rows = {}
    for part, images, first, classes in (("train", 59_551, 1, 11_318), ("test", 60_502, 11_319, 11_316)):
        labels = np.sort(np.arange(images) % classes) + first
        rows[part] = [(int(label), 1, f"chair_final/{label}_{row}.JPG") for row, label in enumerate(labels)]
    base = make(tmp_path, rows, make=lambda path: None)
    listed = [Path(path).name for part in rows.values() for _, _, path in part]
    monkeypatch.setattr(
        "nearkin.data.files.os.listdir", lambda folder: listed if Path(folder).name == "chair_final" else []
    )
    splits = sop(base)
    assert (len(splits.train), len(splits.test)) == (59_551, 60_502)
    assert (len(splits.train.class_names), len(splits.test.class_names)) == (11_318, 11_316)
    assert splits.train.class_names[:2] == ("1", "2") and splits.test.class_names[-1] == "22634"


def test_missing_images_and_short_lists_are_named(tmp_path: Path) -> None:
    base = make(tmp_path, ROWS)
    (base / "toaster_final" / "14_0.JPG").unlink()
    with pytest.raises(ValueError) as caught:
        sop(tmp_path)
    assert str(caught.value).startswith(
        f"sop: root must hold the published 120,053 images, got 4 in {tmp_path}: 1 file of Ebay_test.txt is missing, "
        "such as toaster_final/14_0.JPG; train has 3 of 59,551 images and 2 of 11,318 classes; test has 1 of 60,502 "
        "images and 1 of 11,316 classes; unpack the archive again"
    )
    assert sop(tmp_path, check_counts=False).test.class_names == ("11319",)


def test_broken_lines_and_roots_without_the_data(tmp_path: Path) -> None:
    base = make(tmp_path, ROWS)
    lines(base / "Ebay_test.txt", ["image_id class_id super_class_id path", "1 2"])
    with pytest.raises(
        ValueError, match=r"Ebay_test\.txt, line 2, must have 4 words, got '1 2'; unpack the list again"
    ):
        sop(tmp_path, check_counts=False)
    (base / "Ebay_test.txt").unlink()
    with pytest.raises(
        ValueError, match=r"sop: root must hold Stanford_Online_Products/ with Ebay_train\.txt and Ebay_test"
    ):
        sop(tmp_path)

"""Cars196 in both official layouts and as class folders."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import Splits, cars196
from nearkin.data.class_sizes import CARS196
from tests.data.layouts import cars_annotations, cells, class_folders, empty

NAMES = [f"Make Model {number} Coupe 20{number % 13:02d}" for number in range(1, 197)]


def named(splits: Splits) -> list[tuple[str, str]]:
    return [
        (Path(str(image)).name, part.class_names[label])
        for part in (splits.train, splits.test)
        for image, label in zip(part.images, part.labels, strict=True)
    ]


def one_list(root: Path, sizes: dict[int, int]) -> Path:
    """car_ims/ and cars_annos.mat."""
    rows: list[dict[str, object]] = []
    for number, count in sizes.items():
        for _ in range(count):
            name = f"car_ims/{len(rows) + 1:06d}.jpg"
            rows.append({"relative_im_path": name, "bbox_x1": 3, "class": number, "test": len(rows) % 2})
            empty(root / name)
    cars_annotations(root / "cars_annos.mat", rows, NAMES)
    return root


def devkit(root: Path, train: list[int], test: list[int], labels_in: str = "", nested: bool = False) -> Path:
    """cars_train/, cars_test/ and devkit/, from the class of each image."""
    from scipy.io import savemat

    for part, classes, path in (
        ("cars_train", train, root / "devkit" / "cars_train_annos.mat"),
        ("cars_test", test, root / labels_in / "cars_test_annos_withlabels.mat"),
    ):
        rows: list[dict[str, object]] = []
        for number, label in enumerate(classes, start=1):
            empty(root / part / (part if nested else "") / f"{number:05d}.jpg")
            rows.append({"bbox_x1": 1, "class": label, "fname": f"{number:05d}.jpg"})
        cars_annotations(path, rows)
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": cells(NAMES)})
    return root


def test_the_sizes_of_the_classes_add_up_to_the_published_ones() -> None:
    assert len(CARS196) == 196
    assert (sum(CARS196[:98]), sum(CARS196[98:])) == (8_054, 8_131)


def test_a_whole_copy_with_one_list_passes(tmp_path: Path) -> None:
    one_list(tmp_path, dict(enumerate(CARS196, start=1)))
    splits = cars196(tmp_path)
    assert (len(splits.train), len(splits.test)) == (8_054, 8_131)
    assert splits.train.class_names == tuple(NAMES[:98]) and splits.test.class_names == tuple(NAMES[98:])
    assert splits.train.labels.tolist() == np.repeat(np.arange(98), CARS196[:98]).tolist()
    assert splits.notes == () and splits.disjoint
    (tmp_path / "car_ims" / "000001.jpg").unlink()
    (tmp_path / "car_ims" / "016185.jpg").unlink()
    with pytest.raises(ValueError) as caught:
        cars196(tmp_path)
    assert str(caught.value).startswith(
        f"cars196: root must hold the published 16,185 images, got 16,183 in {tmp_path}: "
        "2 files of cars_annos.mat are missing, such as car_ims/000001.jpg and car_ims/016185.jpg; "
        "Make Model 1 Coupe 2001 lacks 1 of its 89 images and Make Model 196 Coupe 2001 lacks 1 of its 80 images; "
        "train has 8,053 of 8,054 images and 98 of 98 classes; "
    )


@pytest.mark.parametrize("inside", ["", "stanford_cars"])
@pytest.mark.parametrize("labels_in", ["", "devkit"])
@pytest.mark.parametrize("nested", [False, True])
def test_the_newer_layout(tmp_path: Path, inside: str, labels_in: str, nested: bool) -> None:
    devkit(tmp_path / inside, [98, 1, 99], [196, 1], labels_in, nested)
    splits = cars196(tmp_path, check_counts=False)
    assert splits.train.class_names == (NAMES[0], NAMES[97])
    assert splits.test.class_names == (NAMES[98], NAMES[195])
    assert named(splits) == [
        ("00002.jpg", NAMES[0]), ("00002.jpg", NAMES[0]), ("00001.jpg", NAMES[97]),
        ("00003.jpg", NAMES[98]), ("00001.jpg", NAMES[195]),
    ]  # fmt: skip
    folders = [Path(str(image)).relative_to(tmp_path / inside).parts[0] for image in splits.train.images]
    assert folders == ["cars_test", "cars_train", "cars_train"]


def test_class_folders(tmp_path: Path) -> None:
    class_folders(tmp_path, ["098.Dodge Charger 2012", "099.FIAT 500 2012", "003.Acura TL 2012"])
    splits = cars196(tmp_path, check_counts=False)
    assert splits.train.class_names == ("003.Acura TL 2012", "098.Dodge Charger 2012")
    assert splits.test.class_names == ("099.FIAT 500 2012",)
    with pytest.raises(
        ValueError, match=r"no image of classes 001, 002, 004 and 190 more; 003\.Acura TL 2012 lacks 83 of"
    ):
        cars196(tmp_path)


def test_the_list_with_labels_is_asked_for(tmp_path: Path) -> None:
    devkit(tmp_path, [1], [99])
    (tmp_path / "cars_test_annos_withlabels.mat").unlink()
    with pytest.raises(
        ValueError, match=r"root must hold cars_test_annos_withlabels\.mat for the newer layout, got none"
    ):
        cars196(tmp_path, check_counts=False)
    cars_annotations(
        tmp_path / "cars_test_annos_withlabels.mat",
        [{"bbox_x1": 1, "fname": "00001.jpg"}, {"bbox_x1": 1, "fname": "2"}],
    )
    with pytest.raises(ValueError, match=r"must have the class of each image; use the list with labels\."):
        cars196(tmp_path, check_counts=False)


def test_damaged_lists_are_named(tmp_path: Path) -> None:
    (tmp_path / "cars_annos.mat").write_bytes(b"nothing of MATLAB")
    with pytest.raises(ValueError, match=r"cars_annos\.mat must be a MATLAB file, got .*; fetch it again\."):
        cars196(tmp_path)
    from scipy.io import savemat

    savemat(tmp_path / "cars_annos.mat", {"other": 1})
    with pytest.raises(ValueError, match=r"cars_annos\.mat must hold 'annotations', got none; fetch it again\."):
        cars196(tmp_path)
    one_list(tmp_path, {197: 2})
    with pytest.raises(ValueError, match=r"classes in cars_annos\.mat must lie between 1 and 196, got 197"):
        cars196(tmp_path)


def test_roots_without_the_data(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"cars196: root must hold cars_annos\.mat beside car_ims/, or .*got an empty folder"
    ):
        cars196(tmp_path)


def test_without_scipy_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_list(tmp_path, {1: 1, 99: 1})
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(
        ImportError, match=r"scipy must be installed to read the \.mat lists .* pip install 'nearkin\[data\]'"
    ):
        cars196(tmp_path)

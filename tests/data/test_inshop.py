"""In-Shop Clothes Retrieval in its official layout."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nearkin.data import inshop
from tests.data.layouts import inshop as make
from tests.data.layouts import lines

ROWS = [
    ("img/WOMEN/Dresses/id_00000010/01_1_front.jpg", "id_00000010", "train"),
    ("img/WOMEN/Dresses/id_00000010/01_2_side.jpg", "id_00000010", "train"),
    ("img/MEN/Denim/id_00000002/02_1_front.jpg", "id_00000002", "query"),
    ("img/MEN/Denim/id_00000002/02_3_back.jpg", "id_00000002", "gallery"),
    ("img/MEN/Denim/id_00000003/01_3_back.jpg", "id_00000003", "gallery"),
]


def test_queries_and_gallery(tmp_path: Path) -> None:
    splits = inshop(make(tmp_path, ROWS), check_counts=False)
    assert splits.train.class_names == ("id_00000010",) and splits.train.query is None
    assert splits.test.class_names == ("id_00000002", "id_00000003")
    assert splits.test.labels.tolist() == [0, 0, 1]
    assert splits.test.query is not None and splits.test.query.tolist() == [True, False, False]
    assert all(Path(str(image)).is_file() for image in splits.test.images)
    assert splits.disjoint and splits.name == "inshop"


def test_the_ways_it_is_kept(tmp_path: Path) -> None:
    make(tmp_path / "one" / "In-shop Clothes Retrieval Benchmark", ROWS)
    assert len(inshop(tmp_path / "one", check_counts=False).train) == 2
    flat = make(tmp_path / "two", ROWS)
    shutil.move(flat / "Img" / "img", flat / "img")
    shutil.move(flat / "Eval" / "list_eval_partition.txt", flat / "list_eval_partition.txt")
    assert len(inshop(flat, check_counts=False).train) == 2
    beside = make(tmp_path / "three", ROWS)
    shutil.move(beside / "Img" / "img", beside / "img")
    assert len(inshop(beside, check_counts=False).train) == 2


def test_a_copy_of_the_published_size_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows as published; the files are names only."""
    rows = []
    for status, images, first, items in (
        ("train", 25_882, 1, 3_997),
        ("query", 14_218, 3_998, 3_985),
        ("gallery", 12_612, 3_998, 3_985),
    ):
        rows += [
            (f"img/WOMEN/id_{first + row % items:08d}/{status}{row}.jpg", f"id_{first + row % items:08d}", status)
            for row in range(images)
        ]
    make(tmp_path, rows, make=lambda path: None)
    (tmp_path / "Img" / "img").mkdir(parents=True)
    names: dict[str, list[str]] = {}
    for path, item, _ in rows:
        names.setdefault(item, []).append(Path(path).name)
    monkeypatch.setattr("nearkin.data.files.os.listdir", lambda folder: names.get(Path(folder).name, []))
    splits = inshop(tmp_path)
    assert len(splits.train) == 25_882 and len(splits.train.class_names) == 3_997
    assert splits.test.query is not None
    assert int(splits.test.query.sum()) == 14_218 and int((~splits.test.query).sum()) == 12_612
    assert len(splits.test.class_names) == 3_985


def test_missing_images_are_named(tmp_path: Path) -> None:
    make(tmp_path, ROWS)
    (tmp_path / "Img" / ROWS[2][0]).unlink()
    message = (
        r"1 file of list_eval_partition\.txt is missing, such as img/MEN/Denim/id_0.*; train has 2 of 25,882 images .*; "
        r"test has 2 of 26,830 .*; test has 0 of 14,218 queries; "
    )
    with pytest.raises(ValueError, match=message):
        inshop(tmp_path)
    assert len(inshop(tmp_path, check_counts=False).test) == 2


def test_lists_of_other_data_are_refused(tmp_path: Path) -> None:
    lines(tmp_path / "Eval" / "list_eval_partition.txt", ["2", "image_name evaluation_status", "img/a.jpg train"])
    message = (
        r"must have the columns image_name item_id evaluation_status in its second line, got 'image_name "
        r"evaluation_status'; take the list of the In-Shop benchmark"
    )
    with pytest.raises(ValueError, match=message):
        inshop(tmp_path)
    make(tmp_path, [("img/a.jpg", "id_1", "val")])
    with pytest.raises(
        ValueError, match=r"must be one of train, query, gallery, got 'val' for img/a\.jpg; fetch the list"
    ):
        inshop(tmp_path)


def test_roots_without_the_data(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"inshop: root must hold Eval/list_eval_partition\.txt and Img/img/, got an empty"
    ):
        inshop(tmp_path)

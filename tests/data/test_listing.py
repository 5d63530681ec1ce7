"""Tables of images: CSV and Parquet."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from nearkin.data import Splits, table
from tests.data.layouts import empty


def write(path: Path, rows: list[dict[str, object]], **dialect: object) -> Path:
    """The rows, through the csv module or pyarrow; their images are made beside the table."""
    for row in rows:
        if row.get("path"):
            empty(path.parent / str(row["path"]))
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), **dialect)  # type: ignore[arg-type]
            writer.writeheader()
            writer.writerows(rows)
    return path


def names(splits: Splits, part: str) -> list[str]:
    chosen = getattr(splits, part)
    return [
        f"{image.name} {chosen.class_names[label]}" for image, label in zip(chosen.images, chosen.labels, strict=True)
    ]


SPLIT = [
    {"path": "i/1.jpg", "label": "cat", "split": "train", "query": 0},
    {"path": "i/2.jpg", "label": "cat", "split": "train", "query": 0},
    {"path": "i/3.jpg", "label": "dog", "split": "test", "query": 1},
    {"path": "i/4.jpg", "label": "dog", "split": "test", "query": 0},
]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_split_and_query_columns(tmp_path: Path, ending: str) -> None:
    splits = table(write(tmp_path / f"images{ending}", SPLIT))
    assert names(splits, "train") == ["1.jpg cat", "2.jpg cat"]
    assert names(splits, "test") == ["3.jpg dog", "4.jpg dog"]
    assert splits.train.query is None
    assert splits.test.query is not None and splits.test.query.tolist() == [True, False]
    assert splits.disjoint and splits.name == "table"
    assert splits.test.images[0] == tmp_path / "i" / "3.jpg"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_without_a_split_the_first_classes_train_whatever_the_order_of_rows(tmp_path: Path, ending: str) -> None:
    rows = [{"path": f"{number}.jpg", "label": number % 12} for number in range(24)]
    splits = table(write(tmp_path / f"images{ending}", rows))  # type: ignore[arg-type]
    assert splits.train.class_names == ("0", "1", "2", "3", "4", "5")
    assert splits.test.class_names == ("6", "7", "8", "9", "10", "11")
    turned = table(write(tmp_path / f"turned{ending}", rows[::-1]), test_share=0.25)  # type: ignore[arg-type]
    assert turned.test.class_names == ("9", "10", "11")


def test_a_query_column_without_a_split(tmp_path: Path) -> None:
    rows = [{"path": f"{label}{number}.jpg", "label": label, "query": number} for label in "ab" for number in (0, 1)]
    splits = table(write(tmp_path / "images.csv", rows))  # type: ignore[arg-type]
    assert splits.train.query is None
    assert splits.test.query is not None and splits.test.query.tolist() == [False, True]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_separators_quotes_spaces_capitals_and_byte_order_marks(tmp_path: Path, delimiter: str) -> None:
    rows: list[dict[str, object]] = [
        {"Label": "a, b; c", "Path": "x 1.jpg", "Split": " Train ", "author": "me"},
        {"Label": "ü", "Path": "dir/y\u20281.jpg", "Split": "TEST", "author": 'say "hi"\nthere'},
    ]
    for row in rows:
        empty(tmp_path / str(row["Path"]))
    path = write(tmp_path / "images.csv", rows, delimiter=delimiter)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\n\n")
    splits = table(path)
    assert names(splits, "train") == ["x 1.jpg a, b; c"]
    assert names(splits, "test") == ["y\u20281.jpg ü"]


def test_absolute_paths(tmp_path: Path) -> None:
    far = empty(tmp_path / "far" / "x.jpg")
    near = tmp_path / "near"
    near.mkdir()
    rows: list[dict[str, object]] = [{"path": str(far), "label": "a"}, {"path": "y.jpg", "label": "b"}]
    assert table(write(near / "images.csv", rows)).train.images == (far,)


def test_val_rows(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"path": "1.jpg", "label": "a", "split": "training"},
        {"path": "2.jpg", "label": "b", "split": "val"},
    ]
    assert names(table(write(tmp_path / "images.csv", rows)), "test") == ["2.jpg b"]
    rows.append({"path": "3.jpg", "label": "c", "split": "test"})
    splits = table(write(tmp_path / "images.csv", rows))
    assert names(splits, "test") == ["3.jpg c"]
    assert splits.notes[0].startswith("1 rows marked val were left out: ")


def test_classes_in_both_parts(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"path": f"{part}{label}.jpg", "label": label, "split": part} for part in ("train", "test") for label in "ab"
    ]
    splits = table(write(tmp_path / "images.csv", rows))
    assert not splits.disjoint and splits.train.class_names == splits.test.class_names == ("a", "b")


def test_gaps_in_parquet_columns(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"path": "1.jpg", "label": 1.0, "query": None},
        {"path": "2.jpg", "label": 2.0, "query": True},
        {"path": "3.jpg", "label": 2.0, "query": False},
    ]
    assert table(write(tmp_path / "images.parquet", rows)).test.class_names == ("2",)
    rows[1]["label"] = float("nan")
    with pytest.raises(ValueError, match=r"table: label must not be empty, got nothing in row 2 of"):
        table(write(tmp_path / "images.parquet", rows))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"table: .* must have the columns path and label, got no header; name the column 'path'\."),
        ("file,label\n", r"must have the columns path and label, got file, label; name the column 'path'\."),
        ("path,class\n", r"got path, class; name the column 'label'\."),
        ("path,label,label\n", r"each column must come once, got 'label' twice in .*; drop one\."),
        ("path,label\n", r"must have rows below its header, got none; list the images\."),
        ("path,label\na.jpg,\na.jpg,b\n", r"table: label must not be empty, got nothing in line 2 of .*; name the class\."),
        ("path,label\n,x\na.jpg,y\n", r"table: path must not be empty, got nothing in line 2 of .*; name the file\."),
        ("path,label\na.jpg,x\nb.jpg,y\nc.jpg,y\n", r"path must name a file, got 2 missing, in line 3 \(b\.jpg\) and line"),
        ("path,label\nd\\a.jpg,x\n", r"in line 2 \(d\\a\.jpg\) of .*; use / between folders\."),
        ("path,label,split\na.jpg,x,train\na.jpg,y,tset\n", r"split must be train, test or val, got .* line 3 \('tset'\)"),
        ("path,label,split\na.jpg,x,train\n", r"split must mark rows of both parts, got no test row in .*; mark some\."),
        ("path,label,query\na.jpg,x,maybe\n", r"query must be 0 or 1, got another word in line 2 \('maybe'\) of"),
        ("path,label,split,query\na.jpg,x,train,1\na.jpg,y,test,1\n", r"query must be 0 in training rows, got 1 in line 2"),
        ("path,label,split,query\na.jpg,x,train,0\na.jpg,y,test,0\n", r"query must mark some test rows .*, got no row"),
        ("path,label,split,query\na.jpg,x,train,0\na.jpg,y,test,1\n", r"got every row marked in .*; mark the rows"),
        ("path,label\na.jpg,x,y\n", r"each line must have 2 cells like the header, got 3 in line 2 of .*; quote cells"),
        ('path,label\n"a.jpg,x\n', r"must be CSV, got unexpected end of data near line 2; correct it\."),
        ("path,label\na.jpg,x\n", r"table: there must be at least 2 classes, .* got only 'x'; add classes"),
    ],
)  # fmt: skip
def test_errors_name_line_and_column(text: str, message: str, tmp_path: Path) -> None:
    empty(tmp_path / "a.jpg")
    path = tmp_path / "images.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        table(path)


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "images.csv"
    path.write_text("path,label\n" + "a.jpg,\n" * 9)
    with pytest.raises(ValueError, match=r"got nothing in line 2, line 3, line 4 and 6 more of"):
        table(path)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"root must be a CSV or Parquet file, got a folder at .*; use nearkin.data.folder"
    ):
        table(tmp_path)
    with pytest.raises(ValueError, match=r"got nothing at .*gone\.csv; check the path\."):
        table(tmp_path / "gone.csv")
    with pytest.raises(ValueError, match=r"root must end with \.csv or .*, got x\.xlsx; save the table as CSV\."):
        table(empty(tmp_path / "x.xlsx"))
    (tmp_path / "latin.csv").write_bytes("path,label\né.jpg,x\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.csv must be UTF-8 text, got .*; save it as UTF-8\."):
        table(tmp_path / "latin.csv")
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"x\.parquet must be a Parquet file, got .*; write it again\."):
        table(tmp_path / "x.parquet")


def test_without_pyarrow_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "images.parquet", SPLIT)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"pyarrow must be installed .*; run pip install 'nearkin\[data\]' or use CSV"
    ):
        table(path)

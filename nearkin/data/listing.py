"""A table of images: a CSV or Parquet file with a path and a label in each row."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearkin.data.files import naming
from nearkin.data.parts import VALIDATION_NOTE, WORDS, Rows, halves, splits_of
from nearkin.data.table import Splits

REQUIRED = ("path", "label")
OPTIONAL = ("split", "query")
CSV_ENDINGS = (".csv", ".tsv", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
YES = ("1", "true", "yes", "query")
NO = ("0", "false", "no", "gallery", "")
INSTALL = "pyarrow must be installed to read Parquet tables, got none; run pip install 'nearkin[data]' or use CSV."


@dataclass(frozen=True)
class Row:
    """One line of the table, as text; ``place`` says where it stands."""

    place: str
    path: str
    label: str
    split: str = ""
    query: str = ""


def table(root: str | os.PathLike[str], test_share: float = 0.5) -> Splits:
    """Your own images, listed: a CSV (header required) or Parquet file with columns ``path`` and ``label``.

    Paths are relative to the file. Two further columns are optional: ``split`` says ``train`` or ``test``; rows
    marked ``val`` test where there is no ``test``, else they are left out. ``query`` (0 or 1) marks the test images that
    ask, the others being their gallery. Without ``split`` the first classes in natural order train and the last
    ``test_share`` of them test, whatever the order of the rows.
    """
    path = Path(root).expanduser()
    if not path.is_file():
        came = "a folder" if path.is_dir() else "nothing"
        hint = "use nearkin.data.folder for folders" if path.is_dir() else "check the path"
        raise ValueError(f"table: root must be a CSV or Parquet file, got {came} at {path}; {hint}.")
    ending = path.suffix.lower()
    if ending not in CSV_ENDINGS + PARQUET_ENDINGS:
        raise ValueError(
            f"table: root must end with {' or '.join((*CSV_ENDINGS, *PARQUET_ENDINGS))}, got {path.name}; "
            f"save the table as CSV."
        )
    columns, found = _read_parquet(path) if ending in PARQUET_ENDINGS else _read_csv(path)
    rows = list(found)
    if not rows:
        raise ValueError(f"table: {path} must have rows below its header, got none; list the images.")
    _refuse(path, [row.place for row in rows if not row.path], "path must not be empty", "nothing", "name the file")
    _refuse(path, [row.place for row in rows if not row.label], "label must not be empty", "nothing", "name the class")
    images = _files(path, rows)
    asks = _queries(path, rows) if "query" in columns else None
    everything = Rows(images, [row.label for row in rows], asks)
    if "split" not in columns:
        train, test = halves("table", everything, test_share)
        _check_query(path, test)
        return splits_of("table", train, test)
    return _by_column(path, rows, everything)


def _by_column(path: Path, rows: Sequence[Row], everything: Rows) -> Splits:
    parts: dict[str, list[int]] = {"train": [], "test": [], "val": []}
    wrong = []
    for number, row in enumerate(rows):
        word = row.split.casefold()
        for part, words in WORDS.items():
            if word in words:
                parts[part].append(number)
                break
        else:
            wrong.append(f"{row.place} ({row.split!r})")
    _refuse(path, wrong, "split must be train, test or val", "another word", "correct it")
    notes = []
    if not parts["test"]:
        parts["test"] = parts["val"]
    elif parts["val"]:
        notes.append(f"{len(parts['val']):,} rows marked val were left out: {VALIDATION_NOTE}.")
    for part in ("train", "test"):
        if not parts[part]:
            raise ValueError(f"table: split must mark rows of both parts, got no {part} row in {path}; mark some.")
    chosen = {}
    for part in ("train", "test"):
        query = None if everything.query is None else [everything.query[number] for number in parts[part]]
        numbers = parts[part]
        chosen[part] = Rows(
            [everything.images[number] for number in numbers], [everything.classes[number] for number in numbers], query
        )
    if chosen["train"].query is not None:
        asking = [
            rows[number].place for number, asks in zip(parts["train"], chosen["train"].query, strict=True) if asks
        ]
        _refuse(path, asking, "query must be 0 in training rows", "1", "only test images ask")
    _check_query(path, chosen["test"])
    train = Rows(chosen["train"].images, chosen["train"].classes)
    return splits_of("table", train, chosen["test"], notes)


def _check_query(path: Path, test: Rows) -> None:
    if test.query is not None and len(set(test.query)) < 2:
        came = "every row" if test.query[0] else "no row"
        raise ValueError(
            f"table: query must mark some test rows and leave a gallery, got {came} marked in {path}; "
            f"mark the rows that ask, or drop the column so that each image asks all others."
        )


def _refuse(path: Path, places: Sequence[str], rule: str, came: str, remedy: str) -> None:
    if places:
        raise ValueError(f"table: {rule}, got {came} in {naming(places)} of {path}; {remedy}.")


def _files(path: Path, rows: Sequence[Row]) -> list[Path]:
    """The images as paths; one that is missing is an error that names its line."""
    base = path.parent
    images = [base / row.path for row in rows]
    missing = [f"{row.place} ({row.path})" for row, image in zip(rows, images, strict=True) if not image.is_file()]
    if missing:
        hint = "use / between folders" if any("\\" in one for one in missing) else "paths are relative to the table"
        raise ValueError(
            f"table: path must name a file, got {len(missing):,} missing, in {naming(missing)} of {path}; {hint}."
        )
    return images


def _queries(path: Path, rows: Sequence[Row]) -> list[bool]:
    wrong = [f"{row.place} ({row.query!r})" for row in rows if row.query.casefold() not in YES + NO]
    _refuse(path, wrong, "query must be 0 or 1", "another word", "mark the rows that ask with 1")
    return [row.query.casefold() in YES for row in rows]


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    for name in REQUIRED:
        if name not in columns:
            raise ValueError(
                f"table: {path} must have the columns path and label, got {', '.join(columns) or 'no header'}; "
                f"name the column {name!r}."
            )
    twice = sorted({name for name in columns if name in REQUIRED + OPTIONAL and list(columns).count(name) > 1})
    if twice:
        raise ValueError(f"table: each column must come once, got {twice[0]!r} twice in {path}; drop one.")


def _read_csv(path: Path) -> tuple[list[str], Iterable[Row]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"table: {path} must be UTF-8 text, got {error.reason}; save it as UTF-8.") from error
    first = text.partition("\n")[0]
    # The separator that spreadsheet programs write depends on the country.
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        columns = [name.strip().casefold() for name in next(reader, [])]
        _check_columns(path, columns)
        return columns, list(_csv_rows(path, columns, reader))
    except csv.Error as error:
        raise ValueError(f"table: {path} must be CSV, got {error} near line {reader.line_num}; correct it.") from error


def _csv_rows(path: Path, columns: list[str], reader: Any) -> Iterator[Row]:
    used = {name: columns.index(name) for name in REQUIRED + OPTIONAL if name in columns}
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(columns):
            raise ValueError(
                f"table: each line must have {len(columns)} cells like the header, got {len(cells)} in line "
                f"{reader.line_num} of {path}; quote cells that contain the separator."
            )
        yield Row(f"line {reader.line_num}", **{name: cells[place].strip() for name, place in used.items()})


def _read_parquet(path: Path) -> tuple[list[str], Iterable[Row]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise ImportError(INSTALL) from error
    try:
        schema = parquet.read_schema(path)
        columns = [str(name).strip().casefold() for name in schema.names]
        _check_columns(path, columns)
        used = {name: schema.names[columns.index(name)] for name in REQUIRED + OPTIONAL if name in columns}
        content = parquet.read_table(path, columns=list(used.values())).to_pydict()
    except ArrowException as error:
        raise ValueError(f"table: {path} must be a Parquet file, got {error}; write it again.") from error
    rows = (
        Row(f"row {number}", **{name: _text(content[stored][number - 1]) for name, stored in used.items()})
        for number in range(1, len(content[used["path"]]) + 1)
    )
    return columns, rows


def _text(cell: object) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace").strip()
    if isinstance(cell, float):  # whole numbers become fractions where a column has gaps, and gaps become NaN
        return "" if math.isnan(cell) else f"{cell:g}" if not cell.is_integer() else str(int(cell))
    return "" if cell is None else str(cell).strip()

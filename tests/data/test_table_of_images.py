"""What a data set is made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearkin.data import ImageTable, Splits


def test_labels_come_from_names_in_the_given_order() -> None:
    table = ImageTable.of(
        [Path("a"), Path("b"), Path("c")], ["y", "x", "y"], ["x", "y"], [True, False, True], {"x": "1", "y": "2"}
    )
    assert table.labels.tolist() == [1, 0, 1] and table.labels.dtype == np.int64
    assert table.query is not None and table.query.tolist() == [True, False, True]
    assert table.super_classes == ("1", "2")
    part = table.select([2, 0])
    assert part.images == [Path("c"), Path("a")] and part.super_classes == ("1", "2")
    assert part.query is not None and part.query.tolist() == [True, True]


def test_an_empty_part_is_a_table() -> None:
    table = ImageTable.of([], [], [])
    assert len(table) == 0 and table.labels.dtype == np.int64


def test_kinds_must_match_the_classes() -> None:
    with pytest.raises(ValueError, match=r"super_classes must have one entry per class \(2\), got 1; name the kind"):
        ImageTable([Path("a")], np.array([0]), ("x", "y"), super_classes=("k",))


def test_notes_are_kept() -> None:
    table = ImageTable.of([], [], [])
    assert Splits(table, table, notes=("one",)).notes == ("one",)

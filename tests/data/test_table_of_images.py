"""What a data set is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_paths_may_be_text(kind: Any) -> None:
    table = ImageTable(kind(["a.png", "b/c.png"]), np.array([0, 1]), ("x", "y"))
    assert table.images == (Path("a.png"), Path("b/c.png")) and table.name(1) == "b/c.png"


def test_images_in_memory_stay_as_they_are() -> None:
    for images in (np.zeros((2, 4, 4), np.uint8), [np.zeros((2, 4), np.uint8)] * 2, [Path("a"), Path("b")]):
        assert ImageTable(images, np.array([0, 0]), ("x",)).images is images


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0.9, 1.7], "labels must be whole numbers, got 0.9; number the classes from 0."),
        ([1, np.nan], "labels must be whole numbers, got nan; number the classes from 0."),
        (["x", "y"], "labels must be whole numbers, got 'x'; use ImageTable.of for the names of classes."),
    ],
)
def test_labels_are_whole_numbers(labels: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        ImageTable([Path("a"), Path("b")], labels, ("x", "y"))
    assert str(caught.value) == sentence


def test_whole_numbers_of_any_type_are_labels() -> None:
    for labels in ([1.0, 0.0], np.array([1, 0], np.uint8), [True, False]):
        table = ImageTable([Path("a"), Path("b")], labels, ("x", "y"))  # type: ignore[arg-type]
        assert table.labels.tolist() == [1, 0] and table.labels.dtype == np.int64


def test_an_empty_part_is_a_table() -> None:
    table = ImageTable.of([], [], [])
    assert len(table) == 0 and table.labels.dtype == np.int64


def test_kinds_must_match_the_classes() -> None:
    with pytest.raises(ValueError, match=r"super_classes must have one entry per class \(2\), got 1; name the kind"):
        ImageTable([Path("a")], np.array([0]), ("x", "y"), super_classes=("k",))


def test_notes_are_kept() -> None:
    table = ImageTable.of([], [], [])
    assert Splits(table, table, notes=("one",)).notes == ("one",)

"""What a data set is to the rest of nearkin: pictures with labels, in two parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ImageTable:
    """Labelled pictures: files, or arrays held in memory.

    - ``images``: n paths (text will do), or n arrays of uint8, (height, width) grey or (height, width, 3) colour;
    - ``labels`` (n,) int64 from 0 to classes - 1; ``class_names`` by label;
    - ``query`` (n,) boolean where some rows ask and the others are the gallery (In-Shop), else None;
    - ``super_classes`` by label where classes fall into kinds (Stanford Online Products), else empty.

    >>> table = ImageTable((Path("a.png"), Path("b.png")), np.array([0, 1]), ("cat", "dog"))
    >>> len(table), table.select([1]).class_names
    (2, ('cat', 'dog'))
    """

    images: Sequence[Path | str] | NDArray[np.uint8] | Sequence[NDArray[np.uint8]]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    query: NDArray[np.bool_] | None = None
    super_classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", _with_paths(self.images))
        object.__setattr__(self, "labels", _whole(self.labels))
        n = len(self.labels)
        if len(self.images) != n:
            raise ValueError(
                f"images and labels must have equal length, got {len(self.images)} and {n}; pass one label per image."
            )
        if n and not 0 <= self.labels.min() <= self.labels.max() < len(self.class_names):
            raise ValueError(
                f"labels must lie between 0 and {len(self.class_names) - 1}, one name for each, got values from "
                f"{self.labels.min()} to {self.labels.max()}; renumber the labels."
            )
        if self.query is not None and (len(self.query) != n or np.asarray(self.query).dtype != bool):
            raise ValueError(f"query must be a boolean mask of {n} rows, got {len(self.query)}; mark each image.")
        if self.super_classes and len(self.super_classes) != len(self.class_names):
            raise ValueError(
                f"super_classes must have one entry per class ({len(self.class_names)}), "
                f"got {len(self.super_classes)}; name the kind of each class."
            )

    @classmethod
    def of(
        cls,
        images: Sequence[Path | str],
        classes: Sequence[str],
        order: Sequence[str],
        query: Sequence[bool] | None = None,
        super_classes: Mapping[str, str] | None = None,
    ) -> ImageTable:
        """A table from the class name of each image; ``order`` lists every class name by label.

        >>> ImageTable.of([Path("a.png"), Path("b.png")], ["dog", "cat"], ["cat", "dog"]).labels
        array([1, 0])
        """
        number = {name: label for label, name in enumerate(order)}
        labels = np.fromiter((number[name] for name in classes), np.int64, len(classes))
        mask = None if query is None else np.asarray(query, bool)
        kinds = () if super_classes is None else tuple(super_classes[name] for name in order)
        return cls(tuple(images), labels, tuple(order), mask, kinds)

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Sequence[int] | NDArray[np.int64]) -> ImageTable:
        """These rows, labels and class names unchanged."""
        index = np.asarray(rows, np.int64)
        images = self.images[index] if isinstance(self.images, np.ndarray) else [self.images[row] for row in index]
        query = None if self.query is None else self.query[index]
        return ImageTable(images, self.labels[index], self.class_names, query, self.super_classes)

    def name(self, row: int) -> str:
        """What to call an image in messages: its path, or its class and row."""
        image = self.images[row]
        return str(image) if isinstance(image, Path) else f"{self.class_names[self.labels[row]]}, image {row}"


def _with_paths(images: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
    """The images as they are, paths given as text as paths."""
    pixels = isinstance(images, np.ndarray) and images.dtype.kind in "uif"
    if pixels or not any(isinstance(image, str) for image in images):
        return images
    return tuple(Path(image) if isinstance(image, str) else image for image in images)


def _whole(labels: Any) -> NDArray[np.int64]:
    """Labels in int64; numbers with a fraction are no labels, nor are names."""
    values = np.asarray(labels)
    if len(values) and values.dtype.kind not in "biuf":
        came = f"{values.flat[0]!s:.40}" if values.dtype.kind in "UO" else str(values.dtype)
        raise ValueError(f"labels must be whole numbers, got {came!r}; use ImageTable.of for the names of classes.")
    fractions = values[~(values == np.round(values))] if values.dtype.kind == "f" else values[:0]
    if len(fractions):
        raise ValueError(f"labels must be whole numbers, got {fractions[0]:g}; number the classes from 0.")
    return np.asarray(values, np.int64)


@dataclass(frozen=True)
class Splits:
    """A data set: what to train on and what to test on. They share no class, unless ``disjoint`` says otherwise.

    ``notes`` are sentences about what was found that a person should know, such as files that were left out.
    """

    train: ImageTable
    test: ImageTable
    name: str = ""
    disjoint: bool = True
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.disjoint:
            both = set(self._present(self.train)) & set(self._present(self.test))
            if both:
                raise ValueError(
                    f"train and test must share no class, got {len(both)} in both, such as {sorted(both)[0]!r}; "
                    f"split by class."
                )

    @staticmethod
    def _present(table: ImageTable) -> list[str]:
        return [table.class_names[label] for label in np.unique(table.labels)]

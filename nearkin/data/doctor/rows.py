"""The images of one table or of several parts, in one row after the other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearkin.data.doctor.findings import Place
from nearkin.data.doctor.survey import Source
from nearkin.data.table import ImageTable


@dataclass(frozen=True)
class Part:
    """A table by the name of its part: "train", "test", or "" where there is only one."""

    name: str
    table: ImageTable


@dataclass(frozen=True)
class Rows:
    """The images of all parts one after the other, with class numbers that are equal for equal names."""

    sources: tuple[Source, ...]
    labels: NDArray[np.int64]
    names: tuple[str, ...]
    places: tuple[Place, ...]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Rows:
        sources: list[Source] = []
        places: list[Place] = []
        for part in parts:
            for row, (image, label) in enumerate(zip(part.table.images, part.table.labels, strict=True)):
                sources.append(image)
                # Names that are no text on this system must still be printable.
                name = part.table.name(row).encode("utf-8", "backslashreplace").decode()
                places.append(Place(name, part.table.class_names[label], row, part.name))
        names = tuple(dict.fromkeys(name for part in parts for name in part.table.class_names))
        number = {name: place for place, name in enumerate(names)}
        labels = np.fromiter((number[place.class_name] for place in places), np.int64, len(places))
        return cls(tuple(sources), labels, names, tuple(places))

    def root(self) -> str:
        """The folder that holds all files, "" where images are in memory."""
        folders = {os.path.dirname(source) for source in self.sources if isinstance(source, Path)}
        try:
            return os.path.commonpath(folders) if folders else ""
        except ValueError:  # some absolute and some not
            return ""

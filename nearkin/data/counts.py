"""The published sizes of the benchmarks, in one place, and the check of a copy against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearkin import wording
from nearkin.data.files import naming
from nearkin.data.table import ImageTable, Splits


@dataclass(frozen=True)
class Counts:
    """Images and classes of the two parts; of the test images, how many are queries where there is a gallery."""

    train_images: int
    train_classes: int
    test_images: int
    test_classes: int
    queries: int | None = None

    @property
    def images(self) -> int:
        return self.train_images + self.test_images


PUBLISHED: dict[str, Counts] = {
    "cub200": Counts(5_864, 100, 5_924, 100),
    "cars196": Counts(8_054, 98, 8_131, 98),
    "sop": Counts(59_551, 11_318, 60_502, 11_316),
    "inshop": Counts(25_882, 3_997, 14_218 + 12_612, 3_985, queries=14_218),
    "mnist": Counts(60_000, 10, 10_000, 10),
}


def counted(train: ImageTable, test: ImageTable) -> Counts:
    """The same figures of what is there."""
    queries = None if test.query is None else int(test.query.sum())
    present = [len(np.unique(part.labels)) for part in (train, test)]
    return Counts(len(train), present[0], len(test), present[1], queries)


def differences(published: Counts, found: Counts) -> list[str]:
    """A phrase for each part whose figures are not the published ones."""
    phrases = []
    for part in ("train", "test"):
        images, classes = (
            (getattr(found, f"{part}_{kind}"), getattr(published, f"{part}_{kind}")) for kind in ("images", "classes")
        )
        if images[0] != images[1] or classes[0] != classes[1]:
            phrases.append(
                f"{part} has {images[0]:,} of {images[1]:,} images and {classes[0]:,} of {classes[1]:,} classes"
            )
    if published.queries is not None and found.queries != published.queries:
        phrases.append(f"test has {found.queries or 0:,} of {published.queries:,} queries")
    return phrases


def missing_files(missing: Sequence[str], source: object) -> str:
    """A phrase that says how many files of a list are missing, and names some."""
    files = wording.count(len(missing), f"file of {source} is", f"files of {source} are")
    return f"{files} missing, such as {naming(missing)}"


def by_class(found: Mapping[str, int], published: Mapping[str, int]) -> list[str]:
    """Phrases that name the classes with other numbers of images than the published ones."""
    missing = [name for name in published if not found.get(name)]
    short = [
        f"{name} lacks {published[name] - count} of its {published[name]} images"
        for name, count in found.items()
        if name in published and 0 < count < published[name]
    ]
    long = [
        f"{name} has {wording.count(count - published[name], 'image')} too many"
        for name, count in found.items()
        if name in published and count > published[name]
    ]
    phrases = [naming(group) for group in (short, long) if group]
    if missing:
        phrases.insert(0, f"no image of class{'es' if len(missing) > 1 else ''} {naming(missing)}")
    return phrases


def settle(
    name: str,
    root: Path,
    train: ImageTable,
    test: ImageTable,
    problems: Sequence[str] = (),
    check_counts: bool = True,
    notes: Sequence[str] = (),
    disjoint: bool = True,
) -> Splits:
    """The splits, if they are the published ones; without ``check_counts`` what differs becomes notes."""
    published, found = PUBLISHED[name], counted(train, test)
    wrong = [*problems, *differences(published, found)]
    if not found.images:
        raise ValueError(
            f"{name}: root must hold images, got none that can be found in {root}"
            f"{': ' + '; '.join(wrong) if wrong else ''}; {_remedy(name, root)}."
        )
    if wrong and check_counts:
        raise ValueError(
            f"{name}: root must hold the published {published.images:,} images, got {found.images:,} in {root}: "
            f"{'; '.join(wrong)}; {_remedy(name, root)}, or pass check_counts=False to load what is there."
        )
    said = [*notes, *(f"not as published: {phrase}." for phrase in wrong)]
    return Splits(train, test, name, disjoint, tuple(said))


def _remedy(name: str, root: Path) -> str:
    return f"unpack the archive again, into an empty folder, or run nearkin data get {name} --root DIR"

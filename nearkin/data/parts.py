"""A person's own images in two parts: given parts, or halves of the classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearkin import checks, wording
from nearkin.data.files import naming, natural
from nearkin.data.table import ImageTable, Splits

SHARE = checks.Limit(low=0, high=1, low_open=True, high_open=True)
WORDS = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "val": ("val", "valid", "validation"),
}
"""What parts are called, in folders and in tables."""

VALIDATION_NOTE = "validation classes are taken from the training classes where a protocol asks for them"


@dataclass(frozen=True)
class Rows:
    """Images with the name of the class of each, and which of them ask where some do."""

    images: Sequence[Path]
    classes: Sequence[str]
    query: Sequence[bool] | None = None

    def of_classes(self, names: Sequence[str]) -> Rows:
        """The rows of these classes."""
        wanted = set(names)
        kept = [row for row, name in enumerate(self.classes) if name in wanted]
        query = None if self.query is None else [self.query[row] for row in kept]
        return Rows([self.images[row] for row in kept], [self.classes[row] for row in kept], query)


def halves(owner: str, rows: Rows, test_share: float) -> tuple[Rows, Rows]:
    """The first classes in natural order train, the last ``test_share`` of them test."""
    checks.setting(owner, "test_share", test_share, SHARE)
    names = sorted(set(rows.classes), key=natural)
    if len(names) < 2:
        came = f"only {names[0]!r}" if names else "none"
        way = "mark both parts in a column split"
        if owner == "folder":
            way = "pass split='all' (--data-settings split=all) where nothing is trained"
        raise ValueError(
            f"{owner}: there must be at least 2 classes, one to train on and one to test on, got {came}; "
            f"add classes, or {way}."
        )
    test = min(max(int(len(names) * test_share), 1), len(names) - 1)
    train = rows.of_classes(names[:-test])
    # Training images neither ask nor answer.
    return Rows(train.images, train.classes), rows.of_classes(names[-test:])


def splits_of(name: str, train: Rows, test: Rows, notes: Sequence[str] = ()) -> Splits:
    """Tables of both parts; classes that are in both keep one number, and the splits say that they are not disjoint."""
    said = list(notes)
    train_names, test_names = (sorted(set(part.classes), key=natural) for part in (train, test))
    known = set(train_names)
    shared = [one for one in test_names if one in known]
    if shared:
        # Training classes come first, so that the labels of both parts agree and no training label is unused.
        test_names = train_names + [one for one in test_names if one not in known]
        said.append(
            f"{wording.count(len(shared), 'class is', 'classes are')} in both parts, such as {naming(shared)}: "
            f"the test does not measure classes that training never saw."
        )
    said += _small_classes(train, test)
    return Splits(
        ImageTable.of(train.images, train.classes, train_names),
        ImageTable.of(test.images, test.classes, test_names, test.query),
        name,
        disjoint=not shared,
        notes=tuple(said),
    )


def _small_classes(train: Rows, test: Rows) -> list[str]:
    said = []
    for part, rows, meaning, alone in (
        ("training", train, "they form no positive pair", "it forms no positive pair"),
        ("test", test, "there is nothing to find for them", "there is nothing to find for it"),
    ):
        counts = Counter(rows.classes)
        single = sorted((name for name, count in counts.items() if count == 1), key=natural)
        if single:
            classes = wording.count(len(single), f"{part} class has", f"{part} classes have")
            said.append(f"{classes} one image ({naming(single)}): {meaning if len(single) > 1 else alone}.")
    if len(set(train.classes)) == 1:
        said.append("the training part has one class, so no image has a negative.")
    return said

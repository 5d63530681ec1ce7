"""Findings about whole classes: too few images, and names that are easily taken for each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from nearkin import wording
from nearkin.data.doctor.findings import ClassCount, Finding, Place
from nearkin.data.doctor.kinds import FEW_IMAGES


def too_few(classes: Sequence[ClassCount]) -> Iterator[Finding]:
    """Classes with one readable image, or with fewer than FEW_IMAGES; of one with none, every image is a finding already."""
    for found in classes:
        if not 1 <= found.readable < FEW_IMAGES:
            continue
        kind = "one-image" if found.readable == 1 else "few-images"
        count = wording.count(found.readable, "image")
        broken = "" if found.readable == found.images else f" that can be read, of {found.images}"
        yield Finding(kind, Place(found.name, found.name, part=found.part), count + broken)


def alike_names(classes: Sequence[ClassCount]) -> Iterator[Finding]:
    """Pairs of class names that differ only in case, accents' encoding, spaces or punctuation.

    >>> counts = [ClassCount(name, 9, 9) for name in ("Blue jay", "blue_jay", "jay", "j", "J")]
    >>> [(finding.place.name, finding.other.name) for finding in alike_names(counts)]
    [('blue_jay', 'Blue jay')]
    """
    seen: dict[str, ClassCount] = {}
    for found in classes:
        first = seen.setdefault(_plain(found.name), found)
        if first.name != found.name:
            yield Finding(
                "alike-names",
                Place(found.name, found.name, part=found.part),
                f"{found.name!r} beside {first.name!r}",
                other=Place(first.name, first.name, part=first.part),
            )


def _plain(name: str) -> str:
    """A name without case, spaces and punctuation. A single character keeps them: "d" and "D", or signs, may be classes."""
    text = unicodedata.normalize("NFKC", name)
    plain = re.sub(r"[\W_]+", "", text.casefold())
    return plain if len(plain) > 1 else text

"""The examination: look at every image of a table once, then say everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearkin import checks
from nearkin.data.doctor import embedders
from nearkin.data.doctor.classes import alike_names, too_few
from nearkin.data.doctor.complaints import file_findings
from nearkin.data.doctor.copies import Pair, components, near_copies, same_files
from nearkin.data.doctor.embedders import Embed, Embedder
from nearkin.data.doctor.findings import ClassCount, Finding, Findings
from nearkin.data.doctor.mislabelled import NEIGHBOURS, Verdict, suspects
from nearkin.data.doctor.picture import Facts, Prints, Wanted
from nearkin.data.doctor.relations import copy_findings
from nearkin.data.doctor.rows import Part, Rows
from nearkin.data.doctor.survey import survey
from nearkin.data.table import ImageTable, Splits

Progress = Callable[[int, int], None]


def examine(
    table: ImageTable,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    embed: Embed | str | None = None,
    seed: int = 0,
) -> Findings:
    """Look for everything that is wrong with a table of images.

    - ``workers``: processes that decode; None: one per core;
    - ``progress(done, total)`` is called as images are done;
    - ``embed`` tells classes apart, to find images that look mislabelled: a function from images (n, side, side, 3)
      uint8 to vectors (n, d), with an attribute ``side`` if it wants another than 192; "network", a small pretrained one;
      "plain", descriptions of edges and colours; "none", to leave this out; None: the network where it is installed,
      else plain;
    - ``seed``: of the rows that the search for mislabelled images is calibrated on, where there are very many.

    >>> pictures = np.random.default_rng(0).integers(0, 256, (3, 40, 40), dtype=np.uint8)
    >>> pictures[2] = pictures[0]
    >>> found = examine(ImageTable(pictures, np.array([0, 0, 1]), ("cat", "dog")), embed="none", workers=1)
    >>> found.counts()
    {'conflict': 1, 'one-image': 1, 'few-images': 1}
    """
    return _examine([Part("", table)], (), workers, progress, embed, seed)


def examine_splits(
    splits: Splits,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    embed: Embed | str | None = None,
    seed: int = 0,
) -> Findings:
    """``examine`` for a training and a test part together; copies that are in both are reported as leaks."""
    parts = [Part("train", splits.train), Part("test", splits.test)]
    return _examine(parts, splits.notes, workers, progress, embed, seed)


def _examine(
    parts: Sequence[Part],
    notes: Sequence[str],
    workers: int | None,
    progress: Progress | None,
    embed: Embed | str | None,
    seed: int,
) -> Findings:
    checks.setting("examine", "workers", workers, checks.Limit(low=1, whole=True, none=True))
    checks.setting("examine", "seed", seed, checks.SEED)
    rows = Rows.of(parts)
    if not rows.sources:
        raise ValueError("table must hold at least one image, got none; check where its images come from.")
    embedder = embedders.choose(embed)
    seen = _look(rows, embedder, workers, progress)
    found = list(file_findings(rows, seen.facts))
    pairs, groups = _copies(seen)
    found += copy_findings(rows, pairs, groups)
    classes = _class_counts(parts, rows, seen.facts)
    found += [*too_few(classes), *alike_names(classes)]
    linked = components(len(rows.sources), [(group[0], row) for group in groups for row in group[1:]]
                        + [(pair.first, pair.second) for pair in pairs])  # fmt: skip
    verdict = Verdict()
    if embedder.name and len(seen.readable):
        verdict = suspects(seen.features, rows.labels[seen.readable], linked[seen.readable], seed=seed)
        found += _mislabelled_findings(rows, seen.readable, verdict)
    return Findings.of(
        found,
        classes,
        len(rows.sources),
        features=_about(embedder, verdict),
        notes=tuple(notes),
        root=rows.root(),
    )


@dataclass(frozen=True)
class _Seen:
    """What was seen: facts of all rows; prints and features of those that can be read."""

    facts: tuple[Facts, ...]
    readable: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    mirrors: NDArray[np.uint64]
    grey: NDArray[np.uint8]
    colour: NDArray[np.uint8]
    features: NDArray[np.float32]


def _look(rows: Rows, embedder: Embedder, workers: int | None, progress: Progress | None) -> _Seen:
    """One pass over all images; they are embedded in batches on the way, so that no more are held than needed."""
    network = embedder.function is not None
    wanted = Wanted(crop=embedder.side if network else 0, describe=bool(embedder.name) and not network)
    facts: list[Facts] = []
    prints: list[Prints] = []
    readable: list[int] = []
    features: list[NDArray[np.float32]] = []
    crops: list[NDArray[np.uint8]] = []

    def embed_waiting() -> None:
        if crops:
            features.append(embedders.vectors(embedder, np.stack(crops)))
            crops.clear()

    # Closed at once if embedding fails or is interrupted, so that no process outlives it.
    with closing(survey(rows.sources, wanted, workers)) as images:
        for row, (fact, print_) in enumerate(images):
            facts.append(fact)
            if print_ is not None:
                readable.append(row)
                # Copied, because they are pieces of an answer that holds the crop too.
                prints.append(Prints(print_.hash, print_.mirror, print_.grey.copy(), print_.colour.copy()))
                if network:
                    crops.append(print_.crop)
                elif wanted.describe:
                    features.append(print_.features[None].copy())
                if len(crops) == embedders.BATCH:
                    embed_waiting()
            if progress is not None:
                progress(row + 1, len(rows.sources))
    embed_waiting()
    return _Seen(
        tuple(facts),
        np.array(readable, np.int64),
        np.array([each.hash for each in prints], np.uint64),
        np.array([each.mirror for each in prints], np.uint64),
        np.stack([each.grey for each in prints]) if prints else np.empty((0, 32, 32), np.uint8),
        np.stack([each.colour for each in prints]) if prints else np.empty((0, 8, 8, 3), np.uint8),
        np.concatenate(features) if features else np.empty((0, 0), np.float32),
    )


def _copies(seen: _Seen) -> tuple[list[Pair], list[list[int]]]:
    """Pairs of nearly equal pictures, and groups of equal files, of which only the first is compared with others."""
    # Of files that show nothing, nobody can say that they show the same.
    groups = same_files([fact.checksum if fact.failure is None else "" for fact in seen.facts])
    again = {row for group in groups for row in group[1:]}
    # An empty picture looks like every other.
    kept = [place for place, row in enumerate(seen.readable.tolist()) if row not in again and not seen.facts[row].blank]
    index = np.array(kept, np.int64)
    pairs = near_copies(seen.hashes[index], seen.mirrors[index], seen.grey[index], seen.colour[index])
    row = seen.readable[index]
    return [Pair(int(row[pair.first]), int(row[pair.second]), pair.alike, pair.mirrored) for pair in pairs], groups


def _class_counts(parts: Sequence[Part], rows: Rows, facts: Sequence[Facts]) -> list[ClassCount]:
    counts, start = [], 0
    readable = np.array([fact.failure is None for fact in facts])
    for part in parts:
        here = slice(start, start + len(part.table))
        start = here.stop
        images = np.bincount(rows.labels[here], minlength=len(rows.names))
        good = np.bincount(rows.labels[here][readable[here]], minlength=len(rows.names))
        counts += [
            ClassCount(rows.names[label], int(images[label]), int(good[label]), part.name)
            for label in np.flatnonzero(images)
        ]
    return counts


def _mislabelled_findings(rows: Rows, readable: NDArray[np.int64], verdict: Verdict) -> Iterator[Finding]:
    for suspect in verdict.suspects:
        place = rows.places[readable[suspect.row]]
        other = rows.names[suspect.looks_like]
        votes = f"{suspect.other_votes} of its {NEIGHBOURS} nearest against {suspect.own_votes} of its own class"
        yield Finding(
            "mislabelled",
            place,
            f"looks like {other}, {votes}",
            rows.places[readable[suspect.nearest]],
            round(suspect.confidence, 4),
        )


def _about(embedder: Embedder, verdict: Verdict) -> str:
    """What told classes apart, in a sentence, since a finding is no better than that."""
    if not embedder.name:
        return ""
    if not verdict.judged:
        return f"Labels were not judged by {embedder.name}: no class has enough images, or there is but one."
    kin = f"the nearest other image is of the same class {100 * verdict.recall:.0f} times in 100"
    if not verdict.trusted:
        better = (
            "a network trained on such images" if embedder.function else "the network of pip install 'nearkin[lite]'"
        )
        return f"Labels were not judged: by {embedder.name} {kin}, too seldom to tell; {better} would tell more."
    return f"Labels were judged by {embedder.name}; by it {kin}."

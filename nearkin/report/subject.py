"""The run that is looked at closely: the first run of the best loss of an experiment, with its answers and images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearkin.report.bench import Bench, winner
from nearkin.report.markup import words
from nearkin.report.pictures import Pictures, test_images
from nearkin.results import Result
from nearkin.tournament import Experiment
from nearkin.tournament.words import series

LEFT_OUT = "--pictures none"
LENT = "those of another benchmark are shown instead"
DRAWN_HERE = "glyphs"
"""The data set whose images nearkin draws itself."""


@dataclass(frozen=True)
class Subject:
    """``answers``: what each query got; ``labels``: class of every row that is known, -1 elsewhere."""

    table: Experiment
    label: str
    run: Result
    answers: dict[str, Any]
    pictures: Pictures
    labels: NDArray[np.int64]

    def name(self, number: int) -> str:
        """The name of a class."""
        named = self.answers["class_names"]
        return str(named[number]) if 0 <= number < len(named) else f"class {number}"

    @property
    def drawn(self) -> bool:
        """Whether images can be shown."""
        return self.pictures.pack is not None


NEIGHBOURS = {"nearest", "similarity"}


def without_neighbours(bench: Bench) -> list[str]:
    """The data sets whose best loss kept what its queries got, but not what they found."""
    found = []
    for table in bench.shown():
        answers = bench.answers(bench.counted(table, winner(table))[0])
        if answers and not answers.keys() >= NEIGHBOURS:
            found.append(table.data)
    return found


def subjects(bench: Bench) -> list[Subject]:
    """One for each data set whose best loss kept the answers to its queries and their neighbours."""
    found = []
    for table in bench.shown():
        label = winner(table)
        run = bench.counted(table, label)[0]
        answers = bench.answers(run)
        if not {"rows", "labels", *NEIGHBOURS} <= answers.keys() or not answers["nearest"].size:
            continue
        why = LEFT_OUT if bench.lender is None else LENT
        pictures = test_images(bench, run) if bench.pictures else Pictures(None, why)
        found.append(Subject(table, label, run, answers, pictures, _labels(answers, pictures)))
    return found


def _labels(answers: dict[str, Any], pictures: Pictures) -> NDArray[np.int64]:
    if pictures.pack is not None:
        return np.asarray(pictures.pack.labels, np.int64)
    # Without the images only rows that ask are known; where queries and gallery are one, that is all of them.
    size = int(max(answers["rows"].max(initial=-1), answers["nearest"].max(initial=-1))) + 1
    labels = np.full(size, -1, np.int64)
    labels[answers["rows"]] = answers["labels"]
    return labels


def about_pictures(found: Sequence[Subject]) -> list[str]:
    """Sentences on the pictures in the page: whose they are, or why there are none."""
    said = []
    shown = list(dict.fromkeys(subject.table.data for subject in found if subject.drawn))
    owned = [data for data in shown if data != DRAWN_HERE]
    if owned:
        said.append(
            f"The pictures of {series(owned)} belong to their owners. Some data sets, such as CUB-200-2011, may not be "
            f"passed on: make a report that leaves your hands with --pictures none."
        )
    if DRAWN_HERE in shown:
        said.append(f"The pictures of {DRAWN_HERE} are drawn by nearkin and may be passed on.")
    if any(subject.pictures.why == LEFT_OUT for subject in found):
        said.append("All pictures were left out of this report (--pictures none).")
    said += [
        f"Pictures of {subject.table.data} are not shown: {subject.pictures.why}."
        for subject in found
        if not subject.drawn and subject.pictures.why != LEFT_OUT
    ]
    return said


def about_the_lender(bench: Bench, found: Sequence[Subject], what: str = "these") -> str:
    """A sentence for parts of the page that show another benchmark, as HTML; empty where they do not."""
    if bench.lender is None or not any(subject.drawn for subject in found):
        return ""
    own = series(list(dict.fromkeys(result.data for result in bench.results)))
    lent = series(list(dict.fromkeys(subject.table.data for subject in found if subject.drawn)))
    return f" <b>Images of {words(own)} are not passed on; {what} are of {words(lent)}, another benchmark.</b>"

"""What the ablations have of a claim's pair with equal settings, where the two recipes differ in more than the loss."""

from __future__ import annotations

from functools import cache

import ablations
from claims import Alike, Claim
from packed import PLACES, unpacked
from words import chance, counted, listed, point

from nearkin import results
from nearkin.results import Result
from nearkin.tournament import Experiment

# What a claim is about; anything else makes a difference one of recipes.
OWN = ("loss", "loss_settings", "levels")


@cache
def _measured() -> tuple[dict[str, Experiment], dict[str, dict[str, Result]]]:
    """The tables of the ablations and, under the labels of each, a run of every row."""
    with unpacked(ablations.PACKED) as folder:
        runs = [run for run in results.read(folder) if run.done]
        tables = ablations.tables_of(runs, folder)
    named = {entry.grid: {run.label: run for run in ablations.chosen(entry, runs)} for entry in ablations.ABLATIONS}
    return tables, named


def difference(entry: Alike) -> tuple[float, float]:
    """Points of R@1 between the two rows, and p corrected for all pairs of their table."""
    table = _measured()[0][entry.grid]
    assert table.comparison is not None
    at = table.labels.index(entry.one), table.labels.index(entry.against)
    return 100 * float(table.comparison.intervals.difference[at]), float(table.comparison.p[at])


def beside(entry: Claim, differing: dict[str, dict[str, list[str]]]) -> str:
    """In a few sentences, for each pair of ``entry.alike``; ``differing``: by other loss, the settings that are not the
    same, the claim's loss first."""
    said = []
    for other in dict.fromkeys(pair.other for pair in entry.alike):
        unlike = {name: values for name, values in differing[other].items() if name not in OWN}
        if not unlike:
            continue
        settings = listed([f"{name} ({' and '.join(values)})" for name, values in unlike.items()])
        found = listed([_told(pair, list(unlike)) for pair in entry.alike if pair.other == other])
        said.append(
            f" **{entry.one} and {other} were not trained alike: they differ in {settings}, so that the difference below is "
            f"not one of losses alone.** With equal settings [the ablations](ablations.md) have {found}."
        )
    return "".join(said)


def _told(entry: Alike, names: list[str]) -> str:
    tables, named = _measured()
    table = tables[entry.grid]
    one, other = (named[entry.grid][label].settings for label in (entry.one, entry.against))
    assert all(one[name] == other[name] for name in one if name not in (*OWN, "seed", *PLACES)), entry
    gap, p = difference(entry)
    first, second = (100 * table.scores[table.labels.index(label)] for label in (entry.one, entry.against))
    at = ", ".join(f"{name} {_value(one[name])}" for name in names)
    return (
        f"{point(gap)} points at {at} ({entry.one} {first:.1f}, {entry.against} {second:.1f}; "
        f"{counted(len(table.parts), 'seed')}, p {_p(p)} for all pairs of that table)"
    )


def _p(p: float) -> str:
    said = chance(p)
    return said if said.startswith("<") else f"= {said}"


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

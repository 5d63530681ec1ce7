"""A source's claim beside what came out on real birds: points, certainty, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from claims import Claim
from words import chance, listed, point

from nearkin import published
from nearkin.tournament import Experiment

LEVEL = 0.05
AGREEMENTS = ("confirmed", "the same way but not certain", "open", "the other way but not certain", "contradicted")


@dataclass(frozen=True)
class Pair:
    """One loss against another: points of R@1 in the source and here, with what is known of the difference."""

    other: str
    there: float
    here: float
    low: float
    high: float
    last: float
    alone: float
    corrected: float

    @property
    def outcome(self) -> str:
        """Told apart after the correction for all pairs, only by the test of this pair, or not at all."""
        if self.corrected < LEVEL:
            return "**better**" if self.here > 0 else "**worse**"
        if self.alone < LEVEL:
            return "ahead, not certain" if self.here > 0 else "behind, not certain"
        return "cannot be told apart"

    @property
    def agreement(self) -> str:
        """What becomes of the source's difference."""
        same = self.here * self.there > 0
        if self.corrected < LEVEL:
            return "confirmed" if same else "contradicted"
        if self.alone < LEVEL:
            return "the same way but not certain" if same else "the other way but not certain"
        return "open"

    @property
    def row(self) -> str:
        there = "" if math.isnan(self.there) else point(self.there)
        return (
            f"| {self.other} | {there} | {point(self.here)} | {self.low:.1f} to {self.high:.1f} | {point(self.last)} | "
            f"{chance(self.alone)} | {chance(self.corrected)} | {self.outcome} |"
        )


def pairs(table: Experiment, entry: Claim, last: dict[str, float]) -> list[Pair]:
    """The comparisons of a claim; ``last`` holds the mean of each loss at the last epoch."""
    comparison = table.comparison
    assert comparison is not None
    between = comparison.intervals
    own = comparison.queries_p if comparison.runs_p is None else np.maximum(comparison.queries_p, comparison.runs_p)
    found = []
    for label in entry.others:
        if label in table.labels:
            at = table.labels.index(entry.one), table.labels.index(label)
            shares = (between.difference[at], between.difference_low[at], between.difference_high[at])
            here, low, high = (100 * float(share) for share in shares)
            there = entry.printed(entry.one) - entry.printed(label)
            gap = last[entry.one] - last[label]
            found.append(Pair(label, there, here, low, high, gap, float(own[at]), float(comparison.p[at])))
    return found


def claim(entry: Claim, found: Sequence[Pair], alike: str = "") -> list[str]:
    """A source's claim beside what came out, and in one sentence whether the two agree; ``alike`` follows on it."""
    agreed: dict[str, list[str]] = {}
    for pair in found:
        if not math.isnan(pair.there):
            named = f"{pair.other} in another form" if pair.other in entry.forms else pair.other
            agreed.setdefault(pair.agreement, []).append(named)
    first = f"**{entry.title}.** {entry.words}"
    if agreed:
        source = published.table_of(entry.source, entry.table)
        fact = next(fact for fact in source.facts if fact.method == entry.rows[entry.one])
        protocol = "protocol not stated" if fact.protocol == "unknown" else fact.protocol
        said = [f"**{kind}** against {listed(agreed[kind])}" for kind in AGREEMENTS if kind in agreed]
        first += (
            f" Here, beside {source.label} of *{published.source_of(entry.source).title}* ({fact.network}, {protocol}): "
            f"{'; '.join(said)}."
        )
        forms = [f"{other} is {there} (here {here})" for other, (there, here) in entry.forms.items()]
        if forms:
            first += f" In the source {listed(forms)}."
    return [
        first + alike,
        "",
        f"| {entry.one} against | in the source | here | 95% interval | last epoch | p alone | p, all pairs | here it is |",
        "|---|---:|---:|---|---:|---:|---:|---|",
        *(pair.row for pair in found),
        "",
    ]

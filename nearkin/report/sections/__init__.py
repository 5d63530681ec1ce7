"""The parts of the page, one idea each: a function from what was read to a section, or None where there is nothing."""

from __future__ import annotations

from nearkin.report.bench import Bench
from nearkin.report.markup import Section
from nearkin.report.sections import (
    classes,
    confused,
    curves,
    feedback,
    map,
    published,
    ranks,
    runs,
    scores,
    shapes,
    similarities,
    strips,
    weights,
)
from nearkin.report.subject import about_pictures, about_the_lender, subjects, without_neighbours


def sections(bench: Bench) -> list[Section]:
    """Every section that has something to show, in the order of the page."""
    closely = subjects(bench)
    lent = subjects(bench.lender) if bench.lender is not None else []
    seen = lent if bench.lender is not None else closely
    whose = about_the_lender(bench, lent)
    over_all = ranks.section(bench)
    # Of several experiments the ranking is what the verdict rests on; of one it says less than the bars.
    several = bench.verdict is not None and len(bench.verdict.ranked) > 1
    found = [
        over_all if several else None,
        scores.figures(bench),
        scores.table(bench),
        scores.costs(bench) if len(bench.tables) > 1 else None,
        published.section(bench),
        shapes.sizes(bench),
        shapes.networks(bench),
        curves.section(bench),
        feedback.section(bench),
        None if several else over_all,
        similarities.section(bench),
        classes.section(bench),
        confused.section(closely, lent, about_the_lender(bench, lent, "the pictures below"), without_neighbours(bench)),
        strips.section(bench.lender or bench, seen, whose),
        map.section(bench.lender or bench, seen, whose),
        weights.section(bench),
        runs.section(bench),
        runs.made(bench, about_pictures([*closely, *lent])),
    ]
    return [section for section in found if section is not None]

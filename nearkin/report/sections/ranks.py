"""The critical-difference diagram, or for one experiment its means and groups; and the table of ranks."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from nearkin.report.bench import Bench
from nearkin.report.figures.draw import Figure
from nearkin.report.figures.groups import Place, groups
from nearkin.report.markup import Section, cell, grid, listed, panel, words
from nearkin.tournament import Verdict, svg
from nearkin.tournament.words import chance, percent, ranks_of


def section(bench: Bench) -> Section | None:
    """What the tournament draws, in the page's colours."""
    verdict = bench.verdict
    if verdict is None or not verdict.judged:
        return None
    drawn = replace(figure(svg(verdict, standalone=False)), narrow=narrow(verdict))
    test = verdict.friedman
    if test is None:
        lead = "Means with 95 % intervals. Losses joined by dots cannot be told apart."
        return Section("ranks", "Who can be told apart", lead, panel(drawn), (drawn,))
    headings = [("loss", "word"), ("mean rank", "number"), ("deviation", "number"), ("total", "number")]
    headings += [("best in", "number"), ("group", "word")]
    totals = ranks_of([entry.total for entry in verdict.standings])
    rows = [
        f"<tr>{cell(words(entry.label), entry.label, 'word')}{cell(f'<b>{entry.mean:.2f}</b>', entry.mean, 'number')}"
        f"{cell(f'{entry.deviation:.2f}', entry.deviation, 'number')}{cell(total, entry.total, 'number')}"
        f"{cell(str(entry.best), entry.best, 'number')}{cell(entry.letters, entry.letters, 'word')}</tr>"
        for entry, total in zip(verdict.standings, totals, strict=True)
    ]
    named = "Wilcoxon signed-rank test" if test.method == "wilcoxon" else "Friedman test"
    lead = (
        f"Ranks by {words(verdict.metric)} over {len(verdict.ranked)} experiments, {words(verdict.protocol)} ({named}, "
        f"{words(chance(test.p))}). A bar, or a column of dots, joins losses that cannot be told apart."
    )
    which = listed([table.name for table in verdict.ranked])
    body = panel(drawn) + grid(headings, rows, "sortable")
    body += f"<details><summary>The experiments that are ranked</summary>{which}</details>"
    return Section("ranks", "Who can be told apart", lead, body, (drawn,))


def narrow(verdict: Verdict) -> Figure:
    """The same below each other, for a narrow screen."""
    at = {entry.label: number for number, entry in enumerate(verdict.standings)}
    joined = [sorted(at[label] for label in group) for group in verdict.groups if len(group) > 1]
    test = verdict.friedman
    if test is not None:
        rows = [Place(entry.label, entry.mean, f"{entry.mean:.2f}") for entry in verdict.standings]
        far = f"; critical difference {test.difference:.2f}" if math.isfinite(test.difference) else ""
        under = f"over {len(verdict.ranked)} experiments, {verdict.protocol}{far}"
        return groups("ranks", f"Mean rank by {verdict.metric}", under, rows, joined)
    rows = [
        Place(entry.label, 100 * entry.score, percent(entry.score), 100 * entry.low, 100 * entry.high)
        for entry in verdict.standings
    ]
    under = "Joined by dots: cannot be told apart. Go by the dots: intervals may overlap where differences are sure."
    title = f"{verdict.metric} in percent, {verdict.ranked[0].name}"
    return groups("ranks", title, under if joined else "", rows, joined)


def figure(drawn: str) -> Figure:
    """A figure of the tournament as one of the report's."""
    found = re.match(r'<svg[^>]*viewBox="0 0 (\d+) (\d+)"[^>]*><title>(.*?)</title>(.*)</svg>\s*$', drawn, re.DOTALL)
    assert found is not None
    import html

    body = f'<g font-size="12">{found[4]}</g>'
    return Figure("ranks", html.unescape(found[3]), float(found[1]), float(found[2]), body)

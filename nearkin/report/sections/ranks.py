"""The critical-difference diagram, or for one experiment its means and groups; and the table of ranks."""

from __future__ import annotations

import re

from nearkin.report.bench import Bench
from nearkin.report.figures.draw import Figure
from nearkin.report.markup import Section, cell, grid, listed, panel, words
from nearkin.tournament import svg
from nearkin.tournament.words import chance, rank


def section(bench: Bench) -> Section | None:
    """What the tournament draws, in the page's colours."""
    verdict = bench.verdict
    if verdict is None or not verdict.judged:
        return None
    drawn = figure(svg(verdict, standalone=False))
    test = verdict.friedman
    if test is None:
        lead = "Means with 95 % intervals. Losses joined by dots cannot be told apart."
        return Section("ranks", "Who can be told apart", lead, panel(drawn), (drawn,))
    headings = [("loss", "word"), ("mean rank", "number"), ("deviation", "number"), ("total", "number")]
    headings += [("best in", "number"), ("group", "word")]
    rows = [
        f"<tr>{cell(words(entry.label), entry.label, 'word')}{cell(f'<b>{entry.mean:.2f}</b>', entry.mean, 'number')}"
        f"{cell(f'{entry.deviation:.2f}', entry.deviation, 'number')}{cell(rank(entry.total), entry.total, 'number')}"
        f"{cell(str(entry.best), entry.best, 'number')}{cell(entry.letters, entry.letters, 'word')}</tr>"
        for entry in verdict.standings
    ]
    named = "Wilcoxon signed-rank test" if test.method == "wilcoxon" else "Friedman test"
    lead = (
        f"Ranks by {words(verdict.metric)} over {len(verdict.ranked)} experiments, {words(verdict.protocol)} ({named}, "
        f"{words(chance(test.p))}). A bar joins losses that cannot be told apart."
    )
    which = listed([table.name for table in verdict.ranked])
    body = panel(drawn) + grid(headings, rows, "sortable")
    body += f"<details><summary>The experiments that are ranked</summary>{which}</details>"
    return Section("ranks", "Who can be told apart", lead, body, (drawn,))


def figure(drawn: str) -> Figure:
    """A figure of the tournament as one of the report's."""
    found = re.match(r'<svg[^>]*viewBox="0 0 (\d+) (\d+)"[^>]*><title>(.*?)</title>(.*)</svg>\s*$', drawn, re.DOTALL)
    assert found is not None
    import html

    body = f'<g font-size="13">{found[4]}</g>'
    return Figure("ranks", html.unescape(found[3]), float(found[1]), float(found[2]), body, scrolls=True)

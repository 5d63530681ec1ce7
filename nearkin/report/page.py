"""The page: one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from nearkin import __version__
from nearkin.report.bench import Bench
from nearkin.report.markup import Section, words
from nearkin.report.script import SCRIPT
from nearkin.report.sections.verdict import headline, hero
from nearkin.report.style import style
from nearkin.tournament.words import count, series

# What tells a report from another page.
MADE = "Made by nearkin"


def page(bench: Bench, sections: Sequence[Section], title: str, files: Sequence[str]) -> str:
    """The whole page as HTML; ``files`` are those beside it to link to."""
    title = title or "Which loss is best here?"
    links = "".join(
        f'<a href="#{section.anchor}">{words(section.title)}</a>'
        for section in (Section("verdict", "Verdict", "", ""), *sections)
    )
    body = "".join(
        f'<section id="{section.anchor}"><h2>{words(section.title)}</h2><p class="lead">{section.lead}</p>'
        f"{section.body}</section>"
        for section in sections
    )
    beside = "".join(f'<a href="{words(name)}">{words(name)}</a>' for name in files)
    said = headline(bench.verdict) if bench.verdict is not None else bench.why
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<meta name="description" content="{words(said)}">\n'
        f'<title>{words(title)}</title>\n<style>{style()}</style>\n</head>\n<body>\n<div class="page">\n'
        f"<header><div><h1>{words(title)}</h1><p>{words(about(bench))}</p></div>"
        f'<button id="theme" type="button" hidden></button></header>\n'
        f'<nav aria-label="Sections">{links}</nav>\n<main>\n{hero(bench)}\n{body}\n</main>\n'
        f'<footer><p class="files">The numbers as files: {beside}</p><p>{MADE} {words(__version__)} from results '
        f"alone; the page needs no network.</p></footer>\n</div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def about(bench: Bench) -> str:
    """What the benchmark is, in a line."""
    labels = {result.label for result in bench.results}
    data = list(dict.fromkeys(result.data for result in bench.results))
    failed = sum(not result.done for result in bench.begun)
    missing = len(bench.results) - len(bench.begun)
    not_done = "".join(f", {number} {word}" for number, word in ((failed, "failed"), (missing, "missing")) if number)
    parts = [
        count(len(labels), "loss", "losses"),
        f"data: {series(data)}",
        count(len(bench.tables), "experiment"),
        count(len(bench.results), "run") + not_done,
    ]
    return " · ".join(parts)

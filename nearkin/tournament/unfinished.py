"""What a grid asks for and has not got: a comparison that is half done says so."""

from __future__ import annotations

from collections.abc import Sequence

from nearkin.results import ELSEWHERE, MISSING, Result
from nearkin.tournament.words import count, series


def unfinished(results: Sequence[Result]) -> str:
    """How many runs of the grid are missing, and the losses that have none at all; nothing where the grid is done.

    >>> from dataclasses import replace
    >>> run = Result("a", "done", "margin", "margin", "cub200", "resnet50", 512, "fixed_validation", 0, 0)
    >>> unfinished([run]), unfinished([run, replace(run, id="b", seed=1, status=MISSING)])
    ('', '1 of 2 runs of the grid is missing')
    """
    missing = [result for result in results if result.status == MISSING]
    if not missing:
        return ""
    grid = sum(not result.id.startswith(ELSEWHERE) for result in results)
    begun = {result.label for result in results if result.status != MISSING}
    none = list(dict.fromkeys(result.label for result in missing if result.label not in begun))
    who = f", among them all of {series(none)}" if none else ""
    verb = "is" if len(missing) == 1 else "are"
    return f"{len(missing):,} of {count(grid, 'run')} of the grid {verb} missing{who}"


def warned(text: str, lacking: str) -> str:
    """A sentence with what it does not know yet behind it; ``lacking``: what ``unfinished`` says."""
    return f"{text} This is not final: {lacking}." if lacking else text

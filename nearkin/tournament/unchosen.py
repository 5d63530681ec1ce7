"""Where validation could not choose an epoch, as a sentence for the notes of a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nearkin.records import measured, records
from nearkin.results import Result
from nearkin.tournament.words import count


def unchosen(results: Sequence[Result], folder: str | Path) -> list[str]:
    """How many runs had the same measure on their validation classes in every epoch, so that the first was taken.

    Of runs whose log is not there nothing is known.
    """
    curves = [(result, curve) for result in results if result.validation and (curve := _curve(result, Path(folder)))]
    same = [result for result, curve in curves if len(curve) > 1 and len(set(curve)) == 1]
    if not same:
        return []
    return [
        f"Validation had {_size(same)}, and did not change between epochs in {len(same):,} of "
        f"{count(len(curves), 'run')}: there the epoch was not really chosen, the first one was taken; keep more classes "
        f"back with a lower ratio or fewer folds."
    ]


def _curve(result: Result, folder: Path) -> list[float]:
    """What chose the epoch, epoch by epoch."""
    ks = result.settings.get("ks") or [1]
    log = records(folder / result.folder / "log.jsonl", steps=False) if result.folder else []
    values = [record.get(f"recall@{ks[0]}") for record in measured(log, "validate")]
    return [value for value in values if isinstance(value, int | float)]


def _size(results: Sequence[Result]) -> str:
    """What there was to choose by: classes, of which older runs say nothing, and queries."""
    parts = []
    for name, word, several in (("classes", "class", "classes"), ("queries", "query", "queries")):
        found = {value for result in results if isinstance(value := (result.validation or {}).get(name), int)}
        if found:
            least, most = min(found), max(found)
            parts.append(count(most, word, several) if least == most else f"{least:,} to {most:,} {several}")
    return ", ".join(parts) or "few queries"

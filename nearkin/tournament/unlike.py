"""What runs that are compared lack, or do not have in common besides the loss, as sentences for the notes of a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from nearkin.results import CPU, ELSEWHERE, GPU, Result
from nearkin.tournament.words import count, series

BUDGET = {"epochs", "iterations"}
"""Settings that say how long training is."""
MEASURED = {"audit", "test", "ks"}
"""Settings that only say what is measured."""
PLACES = {"weights", "root", "packs", "out"}
"""Settings that say where something lies; its name counts."""
ASIDE = {"seed", "fold", "split_seed", "loss", "loss_settings", "recipe", *BUDGET, *MEASURED}
"""Settings that are no part of a recipe, or that are told of by a sentence of their own."""


def unlike(results: Sequence[Result]) -> list[str]:
    """Images that were left out; devices, lengths of vectors, budgets and recipes that differ within an experiment."""
    experiments: dict[tuple[str, str, int, str], list[Result]] = {}
    for result in results:
        if result.done:
            experiments.setdefault(result.experiment, []).append(result)
    found = list(experiments.values())
    return [*_images(found), *_devices(found), *_lengths(found), *_budgets(found), *_recipes(found)]


def _images(experiments: Sequence[Sequence[Result]]) -> list[str]:
    """Images that could not be read, which every number is without."""
    numbers: dict[str, set[int]] = {}
    for found in experiments:
        for result in found:
            if not result.id.startswith(ELSEWHERE):  # of those nothing is known
                numbers.setdefault(result.data, set()).add(result.left_out)
    told = []
    for data, some in numbers.items():
        least, most = min(some), max(some)
        if most:
            each = count(most, "image") if least == most else f"{least} to {most} images, not the same in all runs"
            told.append(f"{each} of {data}")
    return [f"Left out, since they cannot be read: {series(told)}; nearkin data check names them."] if told else []


def _devices(experiments: Sequence[Sequence[Result]]) -> list[str]:
    """Runs on different kinds of device: resumed elsewhere, for one."""
    mixed = [found for found in experiments if {GPU, CPU} <= {result.device for result in found}]
    if not mixed:
        return []
    among = [result for found in mixed for result in found if result.device]
    on = Counter(result.device for result in among)
    auto = any(result.settings.get("precision", "auto") == "auto" for result in among)
    how = ", with precision auto in bf16 and in float32" if auto else ""
    where = "" if len(mixed) == len(experiments) else f" (in {len(mixed)} of {count(len(experiments), 'experiment')})"
    return [
        f"{count(on[GPU], 'run')} on a GPU and {on[CPU]:,} on a CPU are compared{where}{how}: what differs may be the "
        f"device and not the loss."
    ]


def _lengths(experiments: Sequence[Sequence[Result]]) -> list[str]:
    """Vectors of several levels side by side are longer, which costs memory and time of every search later."""
    times = _unequal(experiments, lambda result: result.total // max(result.dim, 1))
    if not times:
        return []
    least = min(times.values())
    dims = {found[0].dim for found in experiments}
    unit = dims.pop() if len(dims) == 1 else None
    said = []
    for value in sorted(set(times.values()) - {least}):
        long = series([label for label, own in times.items() if own == value])
        numbers = f": {value * unit:,} numbers instead of {least * unit:,}" if unit else ""
        said.append(f"{long} {value / least:g} times as long as the shortest{numbers}")
    return [
        f"Vectors differ in length ({'; '.join(said)}), which may be what helps and costs memory and time of a search."
    ]


def _budgets(experiments: Sequence[Sequence[Result]]) -> list[str]:
    """Losses that were trained longer than others."""
    long = _unequal(experiments, _budget)
    if not long:
        return []
    most = Counter(long.values()).most_common(1)[0][0]
    rest = [label for label, value in long.items() if value == most]
    each = [f"{label} {value}" for label, value in long.items() if value != most]
    said = series([*each, f"{rest[0] if len(rest) == 1 else 'the others'} {most}"])
    return [f"Budgets differ ({said}): what differs may be the training and not the loss."]


def _budget(result: Result) -> str | None:
    """How long training is, as a run was told."""
    for name in ("iterations", "epochs"):  # the first rules where both are given
        value = result.settings.get(name)
        if isinstance(value, int) and value > 0:
            return f"{value:,} {name}"
    return None


def _recipes(experiments: Sequence[Sequence[Result]]) -> list[str]:
    """Settings of training in which losses differ; each may have a recipe of its own."""
    names = dict.fromkeys(name for found in experiments for name in differing(found))
    if _lengths(experiments):
        names.pop("levels", None)
    if not names:
        return []
    return [
        f"Recipes differ ({series(sorted(names))}): a difference between two losses is one of loss and recipe together."
    ]


def differing(results: Sequence[Result]) -> list[str]:
    """Names of settings, besides the loss and its own, that are not the same in all runs that have them."""
    first: dict[str, Any] = {}
    found: dict[str, None] = {}
    for result in results:
        for name, setting in result.settings.items():
            value = PurePath(str(setting)).name if name in PLACES else setting
            if name not in ASIDE and first.setdefault(name, value) != value:
                found[name] = None
    return list(found)


def _unequal(experiments: Sequence[Sequence[Result]], value: Callable[[Result], Any]) -> dict[str, Any]:
    """What each loss has in the first experiment in which they do not have the same."""
    for runs in experiments:
        found = {result.label: own for result in runs if (own := value(result)) is not None}
        if len(set(found.values())) > 1:
            return found
    return {}

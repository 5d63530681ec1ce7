"""The settings of a search, and the plan for each loss that comes out of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from nearkin import __version__, checkpoint, checks, config
from nearkin.checks import COUNT, SEED
from nearkin.config import option
from nearkin.train.settings import Train, check_names, resolve
from nearkin.tune.plan import OWN, Plan, space
from nearkin.tune.propose import METHODS
from nearkin.tune.study import FORMAT, check_format

COMMAND = "study.json"


@dataclass(frozen=True)
class Search:
    """How to search. What to train is said by the settings of training."""

    losses: str = option(
        "", "comma-separated losses to search for; all: every loss; default: the one loss", group="The search"
    )
    trials: int = option(20, "trials of each loss", COUNT)
    method: str = option("tpe", "how parameters are chosen", tuple(METHODS))
    pruner: str = option("median", "stop a trial that is below the median of the others", ("median", "none"))
    search: str = option(OWN, "comma-separated parameters to search; own: those the loss brings")
    ranges: dict[str, Any] = option({}, "ranges of parameters, such as 'lr={low=1e-5,high=1e-3,log=true}'")
    search_seed: int = option(0, "seed of the choice of parameters", SEED)
    processes: int = option(1, "trials at once on this machine", COUNT)
    retry_failed: bool = option(False, "run again what failed in the past")
    study: str = option("", "folder of the study; default: runs/tune-DATA")

    def __post_init__(self) -> None:
        config.check("tune", self)


SEARCH = {field.name for field in fields(Search)}
TRAIN = {field.name for field in fields(Train)}
TABLES = config.tables(Search) | config.tables(Train)


def layer(found: Mapping[str, Any]) -> dict[str, Any]:
    """A layer of settings; ``search`` may be a table of ranges, whose keys are then what is searched."""
    plain = dict(found)
    if isinstance(plain.get("search"), Mapping):
        table = dict(plain["search"])
        plain["search"] = ",".join(table)
        given = {name: entry for name, entry in table.items() if entry is not True}
        plain["ranges"] = {**given, **plain.get("ranges", {})}
    return plain


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """One layer of several, the last on top; tables are merged key by key. A loss goes before losses of layers below."""
    found: dict[str, Any] = {}
    for entry in layers:
        if "loss" in entry and "losses" not in entry:
            found.pop("losses", None)
        for name, value in layer(entry).items():
            if name in TABLES and not isinstance(found.get(name, {}), Mapping):
                continue  # what is no table is refused, not covered by one
            both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
            found[name] = {**found[name], **value} if both else value
    return found


def search_of(given: Mapping[str, Any]) -> Search:
    """How to search, with the folder filled in."""
    found = Search(**{name: value for name, value in given.items() if name in SEARCH})
    data = given.get("data", Train().data)
    return found if found.study else replace(found, study=f"runs/tune-{data}")


def plans(given: Mapping[str, Any], search: Search) -> list[Plan]:
    """A plan for every loss."""
    found = [plan_of(loss, given, search) for loss in _losses(_training(given), search)]
    searched = {name for plan in found for name in plan.space}
    for name in search.ranges:
        if name not in searched:
            raise ValueError(
                f"ranges must be of parameters that are searched ({', '.join(sorted(searched))}), got {name!r}; "
                f"add it with --search {search.search},{name}."
            )
    if search.method == "one_at_a_time":
        for plan in found:
            if search.trials <= len(plan.space):
                raise ValueError(
                    f"trials must be at least {len(plan.space) + 1} to try each parameter of {plan.loss} once beside "
                    f"the settings as they are, got {search.trials}; raise trials or search fewer parameters."
                )
    return found


def _losses(training: dict[str, Any], search: Search) -> list[str]:
    from nearkin import losses

    if search.losses.strip() == "all":
        return [cls.name for cls in dict.fromkeys(losses.LOSSES.values())]
    names = [word.strip() for word in search.losses.split(",") if word.strip()]
    for name in names:
        if name not in losses.LOSSES:
            raise ValueError(checks.unknown("loss", name, losses.LOSSES))
    return list(dict.fromkeys(names)) or [resolve(training).loss]


def _training(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in TRAIN}


def plan_of(loss: str, given: Mapping[str, Any], search: Search) -> Plan:
    """The plan for one loss, whether it is among those to search or not."""
    training = _training(given)
    plain = {name: value for name, value in training.items() if name not in ("protocol", "test", "audit")}
    protocol = training.get("protocol", "last_epoch")
    if protocol == "test_feedback":
        raise ValueError(
            "protocol must be fixed_validation or cross_validation while settings are searched for, got "
            "'test_feedback', which looks at the test set; leave it out."
        )
    # A file that trains to the last epoch is a fine base: the search keeps classes back all the same.
    validating = "fixed_validation" if protocol == "last_epoch" else protocol
    base = resolve(plain, {"loss": loss, "protocol": validating, "test": False, "audit": False, "out": ""})
    if base.root:
        base = replace(base, root=str(Path(base.root).resolve()))
    check_names(base)
    plan = Plan(loss, base, space(loss, search.search, search.ranges))
    plan.check()
    return plan


# ------------------------------------------------------------------------------------------------- what was typed


def remembered(folder: Path) -> dict[str, Any]:
    """The settings a study was begun with, as they were given; none if it is new."""
    path = folder / COMMAND
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} must be JSON, got {error}; restore it or begin another study.") from None
    check_format(folder, found)
    given = found.get("given")
    if not isinstance(given, dict):
        raise ValueError(
            f"{path} must hold a table 'given' of the settings the study was begun with, got {given!r}; restore it or "
            f"begin another study."
        )
    return dict(given)


def remember(folder: Path, given: Mapping[str, Any], losses: Sequence[str]) -> None:
    """Keep what was given and every loss of the study, so that ``nearkin tune --study FOLDER`` alone goes on."""
    kept = {name: value for name, value in given.items() if name not in ("study", "processes", "retry_failed")}
    if len(losses) > 1:
        kept["losses"] = ",".join(losses)
    text = json.dumps({"format": FORMAT, "version": __version__, "given": kept}, indent=1).encode()
    path = folder / COMMAND
    if not path.exists() or path.read_bytes() != text:
        checkpoint.replace(path, text)

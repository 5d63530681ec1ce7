"""``nearkin tune``: search for the settings of each loss on validation classes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearkin import config
from nearkin.config import option
from nearkin.distributed import Ranks
from nearkin.train import prepare
from nearkin.train.screen import Screen, unreadable
from nearkin.train.screen import screen as train_screen
from nearkin.train.settings import Train
from nearkin.train.stop import terminable
from nearkin.tune import crew, files
from nearkin.tune import show as pictures
from nearkin.tune.attempt import RUNNING, best
from nearkin.tune.needs import optuna
from nearkin.tune.plan import Plan
from nearkin.tune.settings import SEARCH, TRAIN, Search, merged, plans, remember, remembered, search_of
from nearkin.tune.show import Show
from nearkin.tune.study import JOURNAL, Study
from nearkin.tune.worker import open_study, work


@dataclass(frozen=True)
class Command(Search, Train):
    """The flags of ``nearkin tune``: every setting of a run, and how to search."""

    config: str = option(
        "",
        "TOML file with settings of training and of the search; flags go before it",
        machine=True,
        group="The command",
    )
    out: str = option("", argparse.SUPPRESS, machine=True)  # a file of settings may name one; trials have their own
    test: bool = option(True, argparse.SUPPRESS)  # so may it have these on, which no search leaves so
    audit: bool = option(False, argparse.SUPPRESS)
    dry_run: bool = option(False, "print what would be searched and stop", machine=True)
    given: dict[str, Any] = option({}, "", machine=True)

    @classmethod
    def shown_defaults(cls) -> dict[str, str]:
        """Beside what the recipe fills, what a search never leaves as training has it."""
        return Train.shown_defaults() | {"protocol": "fixed_validation"}

    @classmethod
    def from_flags(cls, given: dict[str, Any]) -> Command:
        """The command with what was typed kept apart from defaults."""
        own = {name: given[name] for name in ("config", "dry_run") if name in given}
        return cls(**own, given={name: value for name, value in given.items() if name not in own})


def run(command: Command) -> int:
    """Search for the best settings of each loss on classes kept back from training; the test set is never looked at.

    nearkin tune --root my/folder --network efficientnet_lite0 --weights package      the default loss, 20 trials
    nearkin tune --data cub200 --root CUB --losses proxy_anchor,ranked_list,margin --trials 30 --processes 2
    nearkin tune --data glyphs --search own,lr --method grid            the loss's own parameters and the learning rate
    nearkin tune --study runs/tune-cub200                               go on after an interruption
    nearkin train --config runs/tune-cub200/best/proxy_anchor.toml --root CUB       train with what was found
    """
    optuna()
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ValueError("nearkin tune must be begun without torchrun, got several processes; use --processes.")
    for name in ("test", "audit"):  # a file for training may have them on; nobody wants what was typed to be dropped
        if command.given.get(name):
            raise ValueError(f"{name} must be off while settings are searched for, got it on; leave it out.")
    if command.given.get("out"):
        raise ValueError(
            f"out must be left out, since every trial has a folder in that of the study, got {command.given['out']!r}; "
            f"name the folder of the study with --study."
        )
    given = gathered(command)
    search = search_of(given)
    found = plans(given, search)
    if command.dry_run:
        print(described(found, search))
        return 0
    with terminable():
        return tune(given, pictures.show)


def gathered(command: Command) -> dict[str, Any]:
    """What was given: flags, before the file, before what the study was begun with."""
    if {"loss", "losses"} <= command.given.keys():
        raise ValueError(
            f"loss and losses must not both be given, got {command.given['loss']!r} and {command.given['losses']!r}; "
            f"leave one out."
        )
    file = config.read(Path(command.config), Command) if command.config else {}
    for name in ("config", "dry_run", "given"):
        file.pop(name, None)
    given = merged(file, command.given)
    folder = search_of(given).study
    before = remembered(Path(folder))
    if (
        "study" in given and not before and not {"data", "root"} & given.keys()
    ):  # only a study that is there needs neither
        what = "which holds none" if Path(folder).is_dir() else "which is not there"
        raise ValueError(
            f"study must be the folder of a study to go on with, got {folder!r}, {what}; check the path, or begin a new one "
            f"with --root FOLDER OF IMAGES."
        )
    if before.get("losses") and file.get("loss") == before.get("loss"):  # the file of before says nothing new
        file.pop("loss", None)
    given = merged(before, file, command.given)
    return {**given, **_absolute(given), "study": folder}


def _absolute(given: dict[str, Any]) -> dict[str, str]:
    """What is a path, so that the study and its best settings serve from any folder."""
    root, weights = given.get("root"), given.get("weights", "")
    found = {"root": str(Path(root).resolve())} if root else {}
    named = weights in ("package", "hub")  # goes before a file of that name
    if isinstance(weights, str) and not named and Path(weights).is_file():
        found["weights"] = str(Path(weights).resolve())
    return found


def tune(given: dict[str, Any], screen: Callable[[], Show] = Show) -> int:
    """Run the study to its end and print what was found; 0, or 1 if a loss has no trial that came to its end."""
    search = search_of(given)
    folder = Path(search.study)
    found = plans(given, search)
    images, classes = looked_at(found[0].base)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / JOURNAL).exists():
        raise ValueError(
            f"study must be a new folder or one that holds a study, got {str(folder)!r} with other files; "
            f"choose another with --study."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"study must be a folder that can be written, got {str(folder)!r}: {error}; choose another."
        ) from None
    show = screen()
    try:
        with open_study(given, images) as study:
            with study.alone():
                known = {name: value for name, value in given.items() if name in SEARCH | TRAIN}
                remember(folder, known, study.losses())
                study.sweep()
            if search.retry_failed:
                study.retry_failed()
            files.write(study)
            show.begin({loss: len(study.counted(loss)) for loss in study.plans}, search.trials)
            _go(study, given, search, show)
    finally:
        show.close()
    trials = {loss: study.counted(loss) for loss in study.plans}
    print(pictures.table(trials, f"recall@{found[0].base.ks[0]}", search.trials, classes))
    with_best = [loss for loss, attempts in trials.items() if best(attempts)]
    if with_best:
        print("\nTrain with the best settings, on all training classes:")
        print(pictures.closing(folder, with_best, found[0].base.root))
    for remark in remarks(study, search):
        print(remark, file=sys.stderr)
    return 0 if len(with_best) == len(trials) else 1


def _go(study: Study, given: dict[str, Any], search: Search, show: Show) -> None:
    left = sum(max(0, search.trials - len(study.counted(loss))) for loss in study.plans)
    try:
        if search.processes > 1 and left > 1:
            crew.go(study, given, min(search.processes, left), show)
        elif left:
            work(study, show)
    except KeyboardInterrupt as stop:
        over = sum(len(study.counted(loss)) for loss in study.plans)
        trials = search.trials * len(study.plans)
        done = f"after {over} of {trials} trials, all of them kept" if over else f"before any of {trials} trials ended"
        raise type(stop)(f"stopped {done}; go on with nearkin tune --study {search.study}.") from None


def looked_at(base: Train) -> tuple[str, int]:
    """The checksum of the training images and the number of validation classes; bad data is found here, not in trials."""
    screen: Screen = train_screen()
    try:
        known, _ = prepare.packs(base, Ranks(), screen)
        if known.bad:
            screen.note(unreadable(known.bad))
    finally:
        screen.close()
    _, validating = prepare.parts(base, known)
    assert validating is not None
    return known.checksum, len(np.unique(validating.labels))


def remarks(study: Study, search: Search) -> list[str]:
    """What a person should know about the numbers of trials."""
    found = []
    for loss, plan in study.plans.items():
        current = study.current(loss)
        running = sum(attempt.status == RUNNING for attempt in current)
        waiting = len(current) - len(study.counted(loss)) - running
        if running:
            found.append(f"nearkin tune: trials of {loss} that still run elsewhere: {running}.")
        elif waiting:
            found.append(
                f"nearkin tune: trials of {loss} that were interrupted and wait: {waiting}; "
                f"go on with --trials {len(current)}."
            )
        elif len(current) < search.trials:
            found.append(
                f"nearkin tune: {loss} has {len(current)} trials of {search.trials}; "
                f"everything there is to try of {', '.join(plan.space)} has been tried."
            )
        elif len(current) > search.trials:
            found.append(f"nearkin tune: {loss} has {len(current)} trials, more than the {search.trials} asked for.")
    return found


def described(found: list[Plan], search: Search) -> str:
    """What would be searched: parameters, ranges and where the search begins."""
    lines = [f"{search.trials} trials of each loss by {search.method}, pruner {search.pruner}, study {search.study}"]
    for plan in found:
        size = "" if plan.size is None else f", {plan.size:,} points"
        lines += ["", f"{plan.loss}, {plan.base.protocol}{size}"]
        for name, parameter in plan.space.items():
            facts = ", ".join(
                key if value is True else f"{key} {value}"
                for key, value in parameter.record().items()
                if value or key == "low"
            )
            lines.append(f"  {name:20s} {facts}; begins at {plan.start[name]}")
    return "\n".join(lines)

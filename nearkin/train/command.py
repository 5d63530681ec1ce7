"""``nearkin train``: settings from a recipe, a file and flags, then the loop."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nearkin import config
from nearkin.config import option
from nearkin.train.folder import RunFolder
from nearkin.train.settings import Train, check_names, resolve

# What may differ when a run is resumed: it changes nothing about the result, or only where it is computed.
FREE = (
    "device",
    "workers",
    "threads",
    "root",
    "packs",
    "compile",
    "graph",
    "checkpoint_every",
    "tensorboard",
    "keep_embeddings",
)


@dataclass(frozen=True)
class Command(Train):
    """The flags of ``nearkin train``: every setting of a run, and where to take them from."""

    config: str = option(
        "", "TOML file with settings; flags override it; it overrides the recipe", machine=True, group="The command"
    )
    resume: str = option("", "folder of a run to go on with", machine=True)
    dry_run: bool = option(False, "print the resolved settings and stop", machine=True)
    given: dict[str, Any] = option({}, "", machine=True)

    @classmethod
    def from_flags(cls, given: dict[str, Any]) -> Command:
        """The command with what was typed kept apart from defaults."""
        own = {name: given[name] for name in ("config", "resume", "dry_run") if name in given}
        return cls(**own, given={name: value for name, value in given.items() if name not in own})


def run(command: Command) -> int:
    """Train an embedding.

    nearkin train --root my/folder --network efficientnet_lite0 --weights package     a folder per class, on a laptop
    nearkin train --data cub200 --root CUB --weights resnet50.safetensors --loss ranked_list --out runs/x
    nearkin train --config grid/best.toml --seed 1                      settings from a file, one changed
    nearkin train --resume runs/x                                       go on after an interruption
    torchrun --nproc-per-node 2 -m nearkin train ...                    several devices
    """
    if command.resume:
        settings = resumed(Path(command.resume), command.given)
    else:
        layers = [config.read(Path(command.config), Train)] if command.config else []
        settings = resolve(*layers, command.given)
        if not settings.out:
            settings = replace(settings, out=f"runs/{settings.data}-{settings.loss}-{settings.seed}")
        if settings.root:  # so that the run can be resumed from another folder
            settings = replace(settings, root=str(Path(settings.root).resolve()))
    check_names(settings)
    if command.dry_run:
        print(config.dump(settings), end="")
        return 0
    from nearkin.train.loop import train
    from nearkin.train.screen import screen, shares, table
    from nearkin.train.stop import terminable
    from nearkin.train.watch import Diverged

    shown = screen()
    try:
        with terminable():
            result = train(settings, resume=bool(command.resume), screen=shown)
    except Diverged as trouble:
        shown.close()
        print(f"nearkin train: {trouble}", file=sys.stderr)
        return 1
    finally:
        shown.close()
    found = result if settings.test else result["validation"]
    if found:  # else the run measured nothing
        print(table(title(settings, result), {settings.loss: shares(found)}))
        for text in shown.warnings:
            print(f"warning: {text}")
    return 0


def resumed(folder: Path, given: dict[str, Any]) -> Train:
    """The settings of the run in a folder, changed only in what does not change its result."""
    settings = RunFolder(folder).settings()
    for name, value in given.items():
        if name not in FREE and value != getattr(settings, name):
            raise ValueError(
                f"{name} must stay {getattr(settings, name)!r} when a run is resumed, got {value!r}; "
                f"leave it out, or start a new run."
            )
    free = {name: value for name, value in given.items() if name in FREE}
    return replace(settings, **free, out=str(folder))


def title(settings: Train, result: dict[str, Any]) -> str:
    """What a result is, so that a number chosen on the test set never looks like one that was not."""
    part = "test set" if settings.test else "validation classes"
    if not settings.chooses:
        return f"{part}, last epoch"
    return f"{part}, epoch {result['epoch'] + 1} by {settings.protocol}"

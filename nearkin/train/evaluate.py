"""``nearkin eval``: measure the embedding of a run."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearkin import checkpoint, checks, config, evaluation
from nearkin.checks import COUNT, Limit
from nearkin.config import option

if TYPE_CHECKING:
    from nearkin.train.settings import Train

WHOLE = Limit(low=0, whole=True)
PARTS = ("train", "test")
LOWEST = 10
"""Classes that --per-class lists."""


@dataclass(frozen=True)
class Evaluate:
    """The flags of ``nearkin eval``."""

    run: str = option("", "folder of the run", positional=True)
    part: str = option("test", "which images to measure", ("test", "train"))
    data: str = option("", "another data set than the run's")
    root: str = option("", "where the data set lies, if not where it was")
    packs: str = option("", "folder that keeps decoded images; default: the user's cache")
    ks: tuple[int, ...] = option((1, 2, 4, 8), "recall@k for these k", COUNT)
    metrics: str = option("recall,r_precision,map@r,map,nmi,f1", "comma-separated measures")
    per_class: bool = option(False, "also list the classes with the lowest recall@1")
    json: str = option("", "write all measures, also per class, to this file")
    device: str = option("auto", "cpu, cuda or cuda:N; auto: cuda where there is one")
    workers: int = option(0, "threads that prepare batches ahead", WHOLE)
    threads: int = option(0, "CPU threads; 0: as torch chooses", WHOLE)

    def __post_init__(self) -> None:
        config.check("eval", self)
        for name in self.measures:
            if name not in evaluation.METRICS:
                raise ValueError(checks.unknown("metric", name, evaluation.METRICS))

    @property
    def measures(self) -> list[str]:
        """The measures by name; there may be spaces around the commas."""
        return [name.strip() for name in self.metrics.split(",")]


def run(command: Evaluate) -> None:
    """Measure the embedding of a run: its test set, or another data set.

    nearkin eval runs/x
    nearkin eval runs/x --per-class
    nearkin eval runs/x --data folder --root other/images

    Images that have changed since the run began are refused, unless --root or --data asks for them.
    """
    from nearkin.train.restore import unfinished, warn_unfinished
    from nearkin.train.screen import screen, shares, table

    if command.json:
        checkpoint.check_file("json", Path(command.json))
    warn_unfinished("eval", unfinished(Path(command.run)))
    shown = screen()
    try:
        found = evaluate(command, shown)
    finally:
        shown.close()
    word = warning(command)
    name = command.data or "the run's data"
    print(table(f"{command.part} set of {name}{word}", {Path(command.run).name: shares(found)}))
    print(f"{found['queries']:,} queries; {found['left_out']:,} without any other image of their class left out")
    if command.per_class:
        print(_worst(found["per_class"], word))
    if command.json:
        checkpoint.replace(Path(command.json), json.dumps({"protocol": _protocol(command), **found}, indent=1).encode())


def warning(command: Evaluate) -> str:
    """What the heading of a table must add, so that a number chosen on these images never looks like one that was not."""
    return ", epoch by test_feedback" if _protocol(command) == "test_feedback" else ""


def _protocol(command: Evaluate) -> str | None:
    """How the epoch was chosen, where the run's own test set is measured; none for other images, which no protocol sees."""
    from nearkin.train.folder import RunFolder

    settings = RunFolder(Path(command.run)).settings()
    own = command.part == "test" and command.data in ("", settings.data)
    return settings.protocol if own else None


def evaluate(command: Evaluate, screen: Any) -> dict[str, Any]:
    """The measures of a run's embedding, with "per_class" by class name where asked for."""
    from nearkin.distributed import Ranks
    from nearkin.train import prepare
    from nearkin.train.measure import measure
    from nearkin.train.restore import restore

    device = prepare.device(command.device)
    settings, model = restore(Path(command.run), device)
    changed = {name: getattr(command, name) for name in ("data", "root", "packs") if getattr(command, name)}
    if command.data and command.data != settings.data:
        changed = {"root": "", "data_settings": {}} | changed
    settings = replace(settings, **changed, ks=command.ks, workers=command.workers, threads=command.threads)
    with prepare.machine(settings, device):
        packs = prepare.packs(settings, Ranks(), screen)
        images = packs[PARTS.index(command.part)]
        if images is None:
            raise ValueError(f"the data set must have {command.part} images, got none; choose another --part.")
        _check_images(command, settings, images.checksum)
        with screen.job("measuring"):
            return measure(
                model,
                prepare.test_feed(settings, model, images, device),
                images,
                Ranks(),
                settings,
                device,
                metrics=command.measures,
                per_class=command.per_class or bool(command.json),
            )


def _check_images(command: Evaluate, settings: Train, checksum: str) -> None:
    """Raise if the images are not those of the run and nobody has asked for others; say so if only their place was named."""
    from nearkin.train.restore import facts

    sums = facts(Path(command.run)).get("packs")
    if command.data or not sums or sums[PARTS.index(command.part)] == checksum:
        return
    others = (
        f"the {command.part} images of {settings.root or settings.data!r} must be those of the run, got others, "
        f"among which may be classes it was trained on"
    )
    if not command.root:
        asking = f"--root {settings.root}" if settings.root else f"--data {settings.data}"
        raise ValueError(f"{others}; restore them, or pass {asking} to measure what is there.")
    print(f"nearkin eval: {others}; they are measured since --root was passed.", file=sys.stderr)


def _worst(classes: dict[str, dict[str, float]], word: str = "") -> str:
    from nearkin.train.screen import shares, table

    first = next(iter(next(iter(classes.values()))))
    asked = {name: found for name, found in classes.items() if found[first] is not None}
    order = sorted(asked, key=lambda name: asked[name][first])[:LOWEST]
    return table(f"lowest classes{word}", {name: shares(classes[name]) for name in order})

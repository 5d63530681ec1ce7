"""The command `nearkin plane`: NRA's figure of handwritten digits in the plane."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nearkin import checkpoint, checks, config
from nearkin.checks import COUNT, POSITIVE, SEED, Limit
from nearkin.config import option
from nearkin.plane.runs import LOSSES, PAPER, settings

WHOLE = Limit(low=0, whole=True)
OPTIMIZERS = ("own", "sgd", "adam", "adamw")


@dataclass(frozen=True)
class Plane:
    """Flags of ``nearkin plane``."""

    root: str = option("", "folder of MNIST; nearkin data get mnist fetches it")
    out: str = option("plane", "folder for figure, measures, points and runs")
    losses: str = option(",".join(PAPER), f"comma-separated losses: {', '.join(LOSSES)}")
    seeds: tuple[int, ...] = option((0,), "seeds; the first is drawn, the table has the mean of all", SEED)
    iterations: int = option(20_000, "batches to train on", COUNT)
    classes: int = option(
        0, "digits in a batch of 80; 0: ten, for NRA four, with which it does better", Limit(0, 10, whole=True)
    )
    optimizer: str = option("own", "optimiser; own: adam, for NRA sgd, which its paper uses elsewhere", OPTIMIZERS)
    lr: float = option(1e-3, "learning rate", POSITIVE)
    points: int = option(5000, "test images drawn", Limit(low=100, whole=True))
    data_settings: dict[str, Any] = option({}, "settings of the data set")
    packs: str = option("", "folder that keeps decoded images; default: the user's cache")
    device: str = option("auto", "cpu, cuda or cuda:N; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: as torch chooses", WHOLE)

    def __post_init__(self) -> None:
        config.check("plane", self)
        for name in self.names:
            if name not in LOSSES:
                raise ValueError(checks.unknown("loss", name, LOSSES))
        for field, given in (("losses", self.names), ("seeds", self.seeds)):
            if not given or len(set(given)) < len(given):
                raise ValueError(f"plane: {field} must be at least one, each once, got {given}; change {field}.")
        if self.classes == 1:
            raise ValueError(
                "plane: classes must be 0 or at least 2, since one digit alone has no negatives, got 1; change classes."
            )
        if not self.out:
            raise ValueError("plane: out must be a folder, got ''; pass, for example, --out plane.")

    @property
    def names(self) -> tuple[str, ...]:
        """The losses by name."""
        return tuple(name.strip() for name in self.losses.split(","))


def run(command: Plane) -> int:
    """Train a small network to two dimensions with several losses, draw the test digits, and measure.

    nearkin plane --root data/mnist --out plane                   the paper's four losses
    nearkin plane --root data/mnist --out plane --seeds 0 1 2     how much of a difference is chance

    Run it again to go on after an interruption: finished trainings are kept. The folder then holds plane.svg,
    plane.json (measures), points.safetensors and the runs.
    """
    from nearkin.train.watch import Diverged

    if not command.root:
        raise ValueError("plane: root must be the folder of MNIST, got ''; fetch it with nearkin data get mnist.")
    try:
        found = make(command)
    except Diverged as trouble:
        print(f"nearkin plane: {trouble}", file=sys.stderr)
        return 1
    from nearkin.plane.show import table

    print(table({LOSSES[name].title: entries for name, entries in found.items()}))
    print(f"{command.points:,} test images, by the distance of raw vectors; docs/plane.md explains the columns.")
    print(f"Figure: {Path(command.out) / 'plane.svg'}")
    return 0


def make(command: Plane) -> dict[str, list[dict[str, Any]]]:
    """Train what is not trained yet, then measure and draw; the measures of each loss, seed by seed."""
    from nearkin import data
    from nearkin.plane.figure import Panel, figure
    from nearkin.plane.measure import measures
    from nearkin.plane.points import Points, draw, points
    from nearkin.train.screen import screen

    # What is wrong with data or points is said before anything is trained.
    draw(command.points, len(data.load("mnist", command.root, **command.data_settings).test), 0)
    out = Path(command.out)
    root = str(Path(command.root).resolve())
    machine = {"root": root, "packs": command.packs, "device": command.device, "threads": command.threads}
    runs = [(name, seed) for name in command.names for seed in command.seeds]
    folders = {}
    for number, (name, seed) in enumerate(runs, 1):
        folders[name, seed] = _trained(command, name, seed, f"{number} of {len(runs)}", machine)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in command.names}
    drawn: dict[str, Points] = {}
    for name, seed in runs:
        shown = screen()
        try:
            # The same images for every loss and seed.
            put = points(folders[name, seed], command.points, command.seeds[0], shown, **machine)
        finally:
            shown.close()
        found[name].append(measures(put, folders[name, seed], seed))
        if seed == command.seeds[0]:
            drawn[name] = put
    panels = [Panel(LOSSES[name].title, _note(found[name][0]), put.places, put.labels) for name, put in drawn.items()]
    words = f"{command.points:,} test images of MNIST in the plane, one panel for each loss: " + "; ".join(
        f"{panel.title}, {panel.note}" for panel in panels
    )
    checkpoint.replace(out / "plane.svg", figure(panels, [str(digit) for digit in range(10)], words).encode())
    _save_points(out / "points.safetensors", drawn)
    record = {"settings": {**asdict(command), "seeds": list(command.seeds)}, "losses": found}
    checkpoint.replace(out / "plane.json", (json.dumps(record, indent=1) + "\n").encode())
    return found


def _note(found: dict[str, Any]) -> str:
    return f"mAP {100 * found['map']:.1f} %"


def _trained(command: Plane, name: str, seed: int, place: str, machine: dict[str, Any]) -> Path:
    """The folder of a finished run: trained now, gone on with, or found."""
    from nearkin.train.folder import RunFolder
    from nearkin.train.loop import train
    from nearkin.train.screen import screen

    wanted = settings(
        name,
        seed=seed,
        iterations=command.iterations,
        classes=command.classes,
        optimizer=command.optimizer,
        lr=command.lr,
        data_settings=command.data_settings,
        **machine,
    )
    # Other settings have another digest and so another folder.
    where = Path(command.out) / "runs" / f"{name}-{seed}-{wanted.digest}"
    folder = RunFolder(where)
    if folder.metrics():
        print(f"{place}: {name}, seed {seed}: trained before, in {where}", flush=True)
        return where
    print(f"{place}: {name}, seed {seed}", flush=True)
    shown = screen()
    try:
        train(replace(wanted, out=str(where)), resume=(where / "config.toml").exists(), screen=shown)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped in {name}, {place}; the same command goes on from the last checkpoint."
        ) from None
    finally:
        shown.close()
    return where


def _save_points(path: Path, drawn: dict[str, Any]) -> None:
    from safetensors.torch import save

    first = next(iter(drawn.values()))
    tensors = {name: put.places.contiguous() for name, put in drawn.items()} | {"labels": first.labels}
    checkpoint.replace(path, save(tensors))

"""The demonstration: ranked list loss teaches a small network to tell characters apart that it has never seen.

Half of the characters of the embedded data set train, the other half test; the table shows the test half before and
after. It goes through the same doors as any other training, ``nearkin train``, ``nearkin eval`` and ``nearkin index build``,
and leaves a run folder with an index of the test half, which ``nearkin serve`` shows. Everything is drawn from the seed, so
two runs on one machine print the same table.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nearkin import calling, checks, config, evaluation, results
from nearkin.config import option

INDEX, IMAGES, PACKS = "unseen.index", "images", "packs"
MARK = ".nearkin-demo"
"""The file that tells a demonstration from a folder of somebody's own."""
OWN = {
    MARK, INDEX, IMAGES, f".{IMAGES}", PACKS, "checkpoint", "config.toml", "log.jsonl", "metrics.json",
    "queries.safetensors", "similarities.json",
}  # fmt: skip
NOT_IN_NAMES = '<>:"/\\|?*'
"""Characters that some file systems do not allow in a name."""
MEASURES = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r", "nmi")


@dataclass(frozen=True)
class Demo:
    """Settings of the demonstration."""

    steps: int = option(600, "batches to train on", checks.COUNT)
    classes: int = option(400, "characters, the first half to train on, the second half to test on", checks.COUNT)
    images: int = option(32, "images of each character", checks.COUNT)
    dim: int = option(64, "size of the embedding", checks.COUNT)
    lr: float = option(4e-3, "learning rate at its highest", checks.POSITIVE)
    seed: int = option(0, "seed of images, network and batches", checks.SEED)
    threads: int = option(1, "CPU threads; the network is too small to gain from many", checks.COUNT)
    out: str = option("runs/demo", "folder of the run; that of an earlier demonstration is replaced")

    def __post_init__(self) -> None:
        config.check("demo", self)


def run(settings: Demo) -> None:
    """Learn to tell unseen characters apart, on the CPU, in under two minutes; then look at them in the browser.

    nearkin demo
    nearkin demo --seed 2
    """
    show(settings, *rows(settings))
    index(settings)
    _say_how_to_look(settings)


def training(demo: Demo) -> Any:
    """The demonstration as the settings of a training run."""
    from nearkin.train.settings import Train

    return Train(
        data="glyphs",
        data_settings={"classes": demo.classes, "images": demo.images, "seed": demo.seed},
        packs=str(Path(demo.out) / PACKS),
        side=0,
        network="small",
        dim=demo.dim,
        frozen_batch_norm=False,
        loss="ranked_list",
        sampler="pk",
        batch=128,
        images=min(4, demo.images),
        iterations=demo.steps,
        geometry="crop",
        size=32,
        resize=32,
        mirror=False,
        lr=demo.lr,
        head_multiplier=1.0,
        weight_decay=1e-4,
        schedule="cosine",
        ramp=0.1,
        warm_up=0,
        device="cpu",
        threads=demo.threads,
        seed=demo.seed,
        tensorboard=False,
        out=demo.out,
    )


def rows(demo: Demo) -> tuple[dict[str, dict[str, float]], int, int, float]:
    """The table's rows, the number of test images and of their classes, and the seconds it took."""
    from nearkin.data.glyphs import check
    from nearkin.distributed import Ranks
    from nearkin.train import prepare
    from nearkin.train.evaluate import Evaluate, evaluate
    from nearkin.train.loop import train
    from nearkin.train.measure import measure
    from nearkin.train.screen import screen

    check(demo.classes, demo.images)  # before an earlier demonstration goes
    settings, begin, shown = training(demo), time.perf_counter(), screen()
    _clear(Path(demo.out))
    device, metrics = torch.device("cpu"), ("recall", "map@r", "nmi")
    try:
        with prepare.machine(settings, device):
            test = prepare.test_pack(settings, shown)
            with shown.job("measuring before") as tell:
                pixels = torch.tensor(test.pixels[::3]).view(len(test), -1).float()  # grey: three equal channels
                found = {
                    "raw pixels": evaluation.evaluate(
                        pixels - pixels.mean(1, keepdim=True), test.labels, metrics=metrics
                    )
                }
                tell(1, 2)
                model = prepare.model(settings)
                feed = prepare.test_feed(settings, model, test, device)
                found["network, untrained"] = measure(model, feed, test, Ranks(), settings, device, metrics)
        train(settings, screen=shown)
        command = Evaluate(run=demo.out, metrics=",".join(metrics), device="cpu", threads=demo.threads)
        found["network, trained"] = evaluate(command, shown)
    finally:
        shown.close()
    return found, len(test), len(test.class_names), time.perf_counter() - begin


def _clear(folder: Path) -> None:
    """Make room for the run: an earlier demonstration goes, and nothing else ever does.

    It is moved aside in one step and then removed, so that an interruption leaves all of it in its place or nothing.
    """
    aside = folder.with_name(f".{folder.name}{MARK}-replaced")
    if aside.exists():
        shutil.rmtree(aside)  # what was interrupted before
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    own = MARK in found
    others = [name for name in found if not own or name not in OWN]
    if others:
        raise ValueError(
            f"out must be a new folder, or an earlier demonstration with nothing else in it, got {str(folder)!r} with "
            f"{others[0]!r}; choose another."
        )
    if own:
        folder.rename(aside)
        shutil.rmtree(aside)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("nearkin demo made this folder, and replaces it when it is run again.\n")


def index(demo: Demo) -> Path:
    """The images never seen as files, a folder for each character, and an index of them; the folder of the index."""
    from nearkin.index.command import Build, build

    folder, out = Path(demo.out) / IMAGES, Path(demo.out) / INDEX
    write_images(demo, folder)
    build(Build(run=demo.out, folder=str(folder), out=str(out), device="cpu"))
    return out


def write_images(demo: Demo, folder: Path) -> None:
    """Write the test half as PNG files; the folder is there once all of them are."""
    from PIL import Image

    from nearkin.data.pack import Pack
    from nearkin.train.screen import screen

    making, shown = folder.with_name(f".{folder.name}"), screen()
    [packed] = Path(demo.out, PACKS).glob("*/test")  # the folder is the demonstration's own, so there is one
    test = Pack.open(packed)
    try:
        with shown.job("writing images") as tell:
            for row in range(len(test)):
                place = making / folder_name(test.class_names[test.labels[row]])
                place.mkdir(parents=True, exist_ok=True)
                # Grey: the three channels of a character are equal.
                Image.fromarray(test.image(row)[..., 0].copy()).save(place / f"{test.rows[row] % demo.images:02d}.png")
                tell(row + 1, len(test))
    finally:
        shown.close()
    making.rename(folder)


def folder_name(character: str) -> str:
    """The folder of a character's images: the character, unless a file system may not take it, and its number.

    The number tells P from p where a file system does not.

    >>> folder_name("Ж"), folder_name("<")
    ('Ж U+0416', 'U+003C')
    """
    number = f"U+{ord(character):04X}"
    return number if character in NOT_IN_NAMES else f"{character} {number}"


def _say_how_to_look(demo: Demo) -> None:
    print("\nSearch them, see them as a map, look at the mistakes:\n")
    if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("uvicorn") is None:
        print("    pip install 'nearkin[serve]'")
    print(f"    {calling.line('serve', Path(demo.out) / INDEX, '--run', demo.out)}\n")


def show(settings: Demo, rows: dict[str, dict[str, float]], images: int, classes: int, seconds: float) -> None:
    """Print the table and what it says."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{images:,} images of {classes} characters never seen")
    table.add_column("")
    for heading in map(results.heading, MEASURES):
        table.add_column(heading, justify="right")
    for name, found in rows.items():
        style = "bold" if name == "network, trained" else ""
        table.add_row(name, *(f"{100 * found[key]:.1f}" for key in MEASURES), style=style)
    console = Console()
    console.print(table)
    after, before = rows["network, trained"]["recall@1"], rows["network, untrained"]["recall@1"]
    console.print(
        f"The nearest image is of the same character {100 * after:.0f} times in 100: {100 * (after - before):+.1f} points "
        f"by ranked list loss, {settings.steps} steps, {seconds:.0f} s in all."
    )
    again = calling.line("eval", settings.out, "--per-class")
    console.print(f"The run is in {settings.out}: measure it again with {again}", soft_wrap=True)

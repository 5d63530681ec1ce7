"""The demonstration: ranked list loss teaches a small network to tell characters apart that it has never seen.

Half of the characters of the embedded data set train, the other half test; the table shows the test half before and
after. Everything is drawn from the seed, so two runs on one machine print the same table.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nearkin import checks, evaluation, losses, samplers

if TYPE_CHECKING:
    from nearkin.data import ImageTable

MEASURES = {"recall@1": "R@1", "recall@2": "R@2", "recall@4": "R@4", "recall@8": "R@8", "map@r": "MAP@R", "nmi": "NMI"}


def _flag(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text, "type": type(default)})


@dataclass(frozen=True)
class Demo:
    """Settings of the demonstration."""

    steps: int = _flag(600, "batches to train on")
    classes: int = _flag(400, "characters, the first half to train on, the second half to test on")
    images: int = _flag(32, "images of each character")
    dim: int = _flag(64, "size of the embedding")
    lr: float = _flag(4e-3, "learning rate at its highest")
    seed: int = _flag(0, "seed of images, network and batches")
    threads: int = _flag(1, "CPU threads; the network is too small to gain from many")

    def __post_init__(self) -> None:
        for name in ("steps", "dim", "threads"):
            checks.setting("demo", name, getattr(self, name), checks.COUNT)
        checks.setting("demo", "lr", self.lr, checks.POSITIVE)
        checks.setting("demo", "seed", self.seed, checks.Limit(low=0, whole=True))


def run(settings: Demo) -> dict[str, dict[str, float]]:
    """Render, measure, train, measure, print; returns the table's rows."""
    console, progress, table = _screen()
    from nearkin.data import glyphs
    from nearkin.models import SmallNet

    torch.set_num_threads(settings.threads)
    begin = time.perf_counter()
    with progress as bars:
        drawing = bars.add_task("drawing characters", total=settings.classes * settings.images, note="")
        splits = glyphs(
            settings.classes, settings.images, seed=settings.seed,
            progress=lambda done, total: bars.update(drawing, completed=done, total=total),
        )  # fmt: skip
        torch.manual_seed(settings.seed)
        network = SmallNet(dim=settings.dim, size=np.asarray(splits.train.images).shape[-1])
        measuring = bars.add_task("measuring before", total=2, note="")
        test = _tensor(splits.test)
        rows = {"raw pixels": _measure(test.flatten(1) - test.flatten(1).mean(1, keepdim=True), splits.test)}
        bars.advance(measuring)
        rows["network, untrained"] = _measure(_embed(network, test), splits.test)
        bars.advance(measuring)
        training = bars.add_task("training", total=settings.steps, note="")
        for step, value in train(network, splits.train, settings):
            bars.update(training, completed=step, note=f"loss {value:.3f}")
        measuring = bars.add_task("measuring after", total=1, note="")
        rows["network, trained"] = _measure(_embed(network, test), splits.test)
        bars.advance(measuring)
    classes, images = len(splits.test.class_names), len(splits.test)
    table.title = f"{images:,} images of {classes} characters never seen"
    table.add_column("")
    for heading in MEASURES.values():
        table.add_column(heading, justify="right")
    for name, found in rows.items():
        style = "bold" if name == "network, trained" else ""
        table.add_row(name, *(f"{100 * found[key]:.1f}" for key in MEASURES), style=style)
    console.print(table)
    gain = 100 * (rows["network, trained"]["recall@1"] - rows["network, untrained"]["recall@1"])
    console.print(
        f"The nearest image is of the same character {100 * rows['network, trained']['recall@1']:.0f} times in 100: "
        f"{gain:+.1f} points by ranked list loss, {settings.steps} steps, "
        f"{time.perf_counter() - begin:.0f} s in all."
    )
    return rows


def train(network: torch.nn.Module, images: ImageTable, settings: Demo) -> Any:
    """Train on batches of 32 classes x 4 images; yields (step, loss) after every step."""
    loss = losses.create("ranked_list")
    pictures, labels = _tensor(images), torch.from_numpy(images.labels)
    per_class = min(4, settings.images)
    batches = samplers.PK(
        images.labels,
        classes=min(32, len(images.class_names)),
        images=per_class,
        batches=settings.steps,
        seed=settings.seed,
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.lr, weight_decay=1e-4)
    network.train()
    for step, batch in enumerate(batches, start=1):
        done = (step - 1) / settings.steps
        # Up in the first tenth, then down along half a cosine.
        rate = settings.lr * min(1.0, (done + 1e-3) / 0.1) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = rate
        value = loss(network(pictures[batch]), labels[batch])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        yield step, value.item()


@torch.no_grad()
def _embed(network: torch.nn.Module, pictures: Tensor) -> Tensor:
    network.eval()
    return torch.cat([network(part) for part in pictures.split(256)])


def _measure(embeddings: Tensor, images: ImageTable) -> dict[str, float]:
    return evaluation.evaluate(embeddings, images.labels, metrics=("recall", "map@r", "nmi"))


def _tensor(images: ImageTable) -> Tensor:
    return torch.from_numpy(np.asarray(images.images))[:, None].float() / 255


def _screen() -> tuple[Any, Any, Any]:
    """Console, progress display and table; the library that draws them is an extra."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.table import Table
    except ImportError as error:
        raise ImportError(
            "rich must be installed for the demonstration, got none; run pip install nearkin[demo]."
        ) from error
    console = Console()
    columns = (
        TextColumn("{task.description:18s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    return console, Progress(*columns, console=console), Table()

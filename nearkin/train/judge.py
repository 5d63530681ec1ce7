"""Those who look at images that training never sees. The loop hands them a model and gets measures, never labels."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from nearkin import checkpoint
from nearkin.data.feed import Resident
from nearkin.data.pack import Pack
from nearkin.distributed import Ranks
from nearkin.models import Embedder
from nearkin.records import records
from nearkin.train import epochs, prepare
from nearkin.train.epochs import Moment
from nearkin.train.measure import METRICS, QUICK, measure
from nearkin.train.settings import Train

Judge = Callable[..., dict[str, Any]]


def judge(
    settings: Train,
    model: Embedder,
    images: Pack,
    *,
    ranks: Ranks,
    device: torch.device,
    metrics: Iterable[str] = METRICS,
    resident: Resident | None = None,
    part: str = "test",
) -> Judge:
    """A function from a model to its measures on these images.

    Called with ``keep``, a folder, it also writes there what each query got; with ``only``, it takes these measures alone;
    with ``moment``, it keeps the vectors of this moment in the run's folder, where the settings ask for it.
    ``resident``: the pixels of these images, where they lie on the device already; ``part``: which images they are.
    """
    feed = prepare.test_feed(settings, model, images, device, resident)

    def measured(
        found: Embedder,
        keep: Path | None = None,
        only: Iterable[str] | None = None,
        moment: Moment | None = None,
    ) -> dict[str, Any]:
        also = None
        if settings.keep_embeddings and moment is not None:
            also = functools.partial(epochs.write, Path(settings.out), moment, part)
        return measure(found, feed, images, ranks, settings, device, only or metrics, keep=keep, also=also)

    return measured


class Auditor:
    """Measures the test set as training goes on, into a file, and tells the loop nothing.

    The file is opened when the epoch has been chosen or, where nothing chooses, when training is over: what choosing on the
    test set would have gained can then be said about the same run.
    """

    def __init__(self, judge: Judge, path: Path, first: bool) -> None:
        self._judge, self._path, self._writes = judge, path, first

    def __call__(self, model: Embedder, epoch: int, step: int) -> None:
        found = self._judge(model, only=QUICK, moment=Moment(epoch, step))
        if self._writes:
            with self._path.open("ab") as file:
                file.write(json.dumps({"kind": "audit", "epoch": epoch, "step": step, **found}).encode() + b"\n")

    def forget(self, step: int) -> None:
        """Drop what was measured after a step that is gone back to."""
        if self._writes and self._path.exists():
            kept = [record for record in records(self._path) if record["step"] <= step]
            # Whole or not at all: what a crash would cut off was measured on models that are gone.
            checkpoint.replace(self._path, b"".join(json.dumps(record).encode() + b"\n" for record in kept))

    def open(self, chosen: int) -> list[dict[str, Any]]:
        """What was measured; ``chosen`` is the epoch, which must have been settled before."""
        assert chosen >= 0
        return records(self._path)


class Untrained:
    """Measures the test set before the first step, into a file, and tells the loop nothing: what training adds to the
    network as it came can be said in the end, of a resumed run too."""

    def __init__(self, judge: Judge, path: Path, first: bool) -> None:
        self._judge, self._path, self._writes = judge, path, first

    def __call__(self, model: Embedder) -> None:
        found = self._judge(model, only=QUICK)
        if self._writes:
            checkpoint.replace(self._path, json.dumps(found).encode())

    def open(self) -> dict[str, dict[str, Any]]:
        """What was measured, under "untrained"; nothing of a run that began before there was such a file."""
        return {"untrained": json.loads(self._path.read_bytes())} if self._path.exists() else {}

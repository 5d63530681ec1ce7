"""What all samplers share: labels, seed, epoch, ranks, length and resuming."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
from torch import Tensor

from nearkin.evaluation.inputs import Labels, Vectors, label_tensor, vector_tensor, whole

# The rows of each class, classes in the order of their labels.
Members = list[np.ndarray]


class Batches(ABC):
    """Lists of row numbers, one per batch, for ``DataLoader(batch_sampler=...)``.

    Each iteration goes through one epoch, and the next through the next; one that was left in the middle begins again. The
    sequence of batches is a function of (labels, settings, seed, epoch), and of the embeddings given to
    ``update`` where a sampler has one; no global random state is read or changed.

    - ``batches``: how many an epoch has; None: images // batch size, at least 1;
    - ``rank``, ``ranks``: this process yields its contiguous share of each batch; the shares of all ranks in
      order are the batch of one process, and their sizes differ by at most one;
    - ``set_epoch(epoch, start)``: choose another epoch; its first ``start`` batches are skipped exactly, so that
      a resumed run goes on where it stopped;
    - ``state()``, ``restore(state)``: what ``update`` found, to go on inside an epoch without the embeddings.

    Attributes: ``size`` (images of a batch over all ranks), ``batches``, ``members``, ``most`` (images of a class in a batch
    at most; None where that depends on the batch).
    """

    name: str
    most: int | None = None

    def __init__(self, labels: Labels, *, batches: int | None, seed: int, epoch: int, rank: int, ranks: int) -> None:
        # A copy: the batches must not change with the caller's array.
        classes = label_tensor("labels", labels, None, "the data set").cpu().numpy().copy()
        if not len(classes):
            raise ValueError(f"{self.name}: labels must hold at least one row, got none; pass one label per image.")
        self.labels = classes
        self.members: Members = class_members(classes)
        self.size = 0
        self.batches = 0 if batches is None else whole(self.name, "batches", batches, 1)
        self.seed = whole(self.name, "seed", seed, 0)
        self.ranks = whole(self.name, "ranks", ranks, 1)
        self.rank = whole(self.name, "rank", rank, 0)
        if self.rank >= self.ranks:
            message = f"{self.name}: rank must be below ranks ({self.ranks}), got {self.rank}; count ranks from 0."
            raise ValueError(message)
        self.epoch = whole(self.name, "epoch", epoch, 0)
        self.start = 0

    def settle(self, size: int, images: int) -> None:
        """Fix the batch size, and from the number of images that take part the length of an epoch."""
        if size < self.ranks:
            message = (
                f"{self.name}: ranks must be at most the batch size ({size}), got {self.ranks}; "
                f"use larger batches or fewer ranks."
            )
            raise ValueError(message)
        self.size = size
        self.batches = self.batches or max(1, images // size)

    @abstractmethod
    def compose(self, generator: np.random.Generator) -> Iterator[list[int]]:
        """Batches without end, over all ranks."""

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Choose the epoch that the next iteration goes through, leaving out its first ``start`` batches."""
        epoch, start = whole(self.name, "epoch", epoch, 0), whole(self.name, "start", start, 0)
        if start > self.batches:
            message = (
                f"{self.name}: start must be at most the batches of an epoch ({self.batches}), got {start}; "
                f"go on with the next epoch."
            )
            raise ValueError(message)
        self.epoch, self.start = epoch, start

    def state(self) -> dict[str, np.ndarray]:
        """What was mined in embeddings: with labels and settings, all that the rest of an epoch is composed of."""
        return {}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:  # noqa: B027  # most mine nothing
        """Take what ``state`` gave, as if it had been mined now."""

    def vectors(self, embeddings: Vectors) -> Tensor:
        """The current embeddings (n, d), one per label."""
        found = vector_tensor("embeddings", embeddings)
        if len(found) != len(self.labels):
            message = (
                f"{self.name}: embeddings must have one row per label ({len(self.labels)}), got {len(found)}; "
                f"embed the whole training set in the order of labels."
            )
            raise ValueError(message)
        return found

    def __len__(self) -> int:
        return self.batches - self.start

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, self.epoch]))
        # Skipped batches are composed all the same: later ones depend on what earlier ones drew.
        return self._through(self.epoch, islice(self.compose(generator), self.start, self.batches))

    def _through(self, epoch: int, batches: Iterator[list[int]]) -> Iterator[list[int]]:
        yield from map(self.share, batches)
        if self.epoch == epoch:  # no other was chosen meanwhile
            self.set_epoch(epoch + 1)

    def share(self, batch: list[int]) -> list[int]:
        """This rank's part of a batch."""
        return batch[len(batch) * self.rank // self.ranks : len(batch) * (self.rank + 1) // self.ranks]


def class_members(labels: np.ndarray) -> Members:
    """The rows of each class, classes in the order of their labels.

    >>> [rows.tolist() for rows in class_members(np.array([7, 3, 7]))]
    [[1], [0, 2]]
    """
    _, counts = np.unique(labels, return_counts=True)
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])


def check_classes(name: str, classes: int, available: int, what: str) -> None:
    """Raise if a batch asks for more classes than there are."""
    if classes > available:
        message = (
            f"{name}: classes must be at most the number of {what} in labels ({available}), got {classes}; "
            f"ask for fewer classes per batch."
        )
        raise ValueError(message)


def check_batch(name: str, batch: int, rows: int) -> None:
    """Raise if a batch asks for more images than there are."""
    if batch > rows:
        message = f"{name}: batch must be at most the number of images ({rows}), got {batch}; use smaller batches."
        raise ValueError(message)

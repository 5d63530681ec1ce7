"""Batches of anchors with their nearest negatives in the whole training set (smart mining, Harwood 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nearkin.evaluation.inputs import Labels, Vectors, whole
from nearkin.evaluation.neighbours import MEMORY, neighbours
from nearkin.samplers.batches import Batches, check_batch
from nearkin.samplers.deck import Deck
from nearkin.samplers.pk import capacity, pk_batches


class Smart(Batches):
    """``batch`` images: groups of an anchor, a positive and the anchor's ``negatives`` nearest negatives.

    Rule, after ``update(embeddings)``: the hard negatives of an image are the ``negatives`` images of other
    classes with the largest cosine similarity over the whole training set (exact; lower row on ties). A batch
    is filled group by group. (1) The anchor is the next image, in a shuffled cycle over all images of classes
    with at least two, that is not in the batch yet (those passed over have had their turn). (2) The positive
    is drawn evenly from the images of its class that are not in the batch; none if all are. (3) Its hard
    negatives follow, nearest first, except those in the batch already. So each anchor meets all its hard
    negatives; the last group is cut where the batch is full. Should anchors run out, the remaining images
    fill the batch in random order.

    Before any update the batches are those of ``PK`` with K = 2 (the least K that fills the batch where 2
    cannot). Call ``update`` before each epoch, with the same embeddings on each rank and when an epoch is
    repeated; one that is resumed may ``restore`` its state instead. Departure from the paper: the search is
    exact, and how hard the negatives are is not adapted during training.

    >>> sampler = Smart([0, 0, 1, 1, 2, 2], batch=3, negatives=1)
    >>> sampler.update([[1.0, 0.0], [0.9, 0.1], [0.5, 0.6], [0.4, 0.6], [0.1, 1.0], [0.0, 1.0]])
    >>> sampler.hardest.tolist()
    [[2], [2], [4], [4], [3], [3]]
    >>> [len(batch) for batch in sampler]
    [3, 3]
    """

    name = "smart"

    def __init__(
        self,
        labels: Labels,
        batch: int = 180,
        negatives: int = 4,
        *,
        memory: int = MEMORY,
        batches: int | None = None,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        super().__init__(labels, batches=batches, seed=seed, epoch=epoch, rank=rank, ranks=ranks)
        batch = whole(self.name, "batch", batch, 1)
        check_batch(self.name, batch, len(self.labels))
        self.negatives = whole(self.name, "negatives", negatives, 1)
        self.memory = whole(self.name, "memory", memory, 1)
        pairs = [rows for rows in self.members if len(rows) >= 2]
        if not pairs:
            raise ValueError(f"{self.name}: labels must hold a class with two images, got none; add a positive.")
        self.anchors = np.sort(np.concatenate(pairs))
        self.settle(batch, len(self.labels))
        self.hardest: np.ndarray | None = None

    def update(self, embeddings: Vectors) -> None:
        """Search the nearest negatives of all rows in the current ``embeddings`` (n, d), on their device."""
        vectors = self.vectors(embeddings)
        different = (self.labels, self.labels)
        _, index = neighbours(vectors, vectors, self.negatives, different=different, memory=self.memory)
        self.hardest = index.cpu().numpy()

    def state(self) -> dict[str, np.ndarray]:
        return {} if self.hardest is None else {"hardest": self.hardest}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.hardest = state.get("hardest")

    def compose(self, generator: np.random.Generator) -> Iterator[list[int]]:
        if self.hardest is None:
            images = 2
            while capacity(self.members, images) < self.size:
                images += 1
            return pk_batches(self.members, images, self.size, generator)
        return self._mined(self.hardest, generator)

    def _mined(self, hardest: np.ndarray, generator: np.random.Generator) -> Iterator[list[int]]:
        anchors = Deck(self.anchors, generator)
        rows_of = dict(zip(np.unique(self.labels).tolist(), self.members, strict=True))
        while True:
            batch: dict[int, None] = {}  # keeps the order in which images joined, and each image once
            for anchor in anchors.deal():
                if anchor in batch:
                    continue
                batch[anchor] = None
                positives = [row for row in rows_of[self.labels[anchor]].tolist() if row not in batch]
                if positives:
                    batch[positives[generator.integers(len(positives))]] = None
                # -1 fills up the list where other classes have fewer images than asked for.
                batch.update((row, None) for row in hardest[anchor].tolist() if row >= 0)
                if len(batch) >= self.size:
                    break
            else:
                batch.update((row, None) for row in generator.permutation(len(self.labels)).tolist())
            yield list(batch)[: self.size]

"""Shuffled batches that do not look at labels: for proxy losses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from nearkin.evaluation.inputs import Labels, whole
from nearkin.samplers.batches import Batches, check_batch
from nearkin.samplers.deck import Deck


class Random(Batches):
    """``batch`` images drawn without replacement from a shuffled cycle over all images.

    Rule: no image twice in a batch, none twice in an epoch of the default length (the rest that does not fill
    a batch is left out); with more ``batches`` the images are shuffled anew. Other settings as in
    ``Batches``.

    >>> sampler = Random(range(10), batch=3)
    >>> len(sampler), len({row for batch in sampler for row in batch})
    (3, 9)
    """

    name = "random"

    def __init__(
        self,
        labels: Labels,
        batch: int = 180,
        *,
        batches: int | None = None,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        super().__init__(labels, batches=batches, seed=seed, epoch=epoch, rank=rank, ranks=ranks)
        batch = whole(self.name, "batch", batch, 1)
        check_batch(self.name, batch, len(self.labels))
        self.settle(batch, len(self.labels))

    def compose(self, generator: np.random.Generator) -> Iterator[list[int]]:
        deck = Deck(np.arange(len(self.labels)), generator)
        while True:
            yield list(islice(deck.deal(), self.size))

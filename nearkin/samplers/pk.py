"""P classes with K images each: every image of a batch meets positives and negatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearkin.evaluation.inputs import Labels, whole
from nearkin.samplers.batches import Batches, Members, check_classes
from nearkin.samplers.deck import Deck, Hands


def capacity(members: Members, images: int) -> int:
    """How many images all classes together can give to one batch."""
    return sum(min(images, len(rows)) for rows in members)


def pk_batches(members: Members, images: int, size: int, generator: np.random.Generator) -> Iterator[list[int]]:
    """Batches of ``size`` images, at most ``images`` of a class; classes and the images of each class in
    turn.
    """
    hands, deck = Hands(members, generator), Deck(np.arange(len(members)), generator)
    while True:
        yield hands.fill(deck.deal(), images, size)


class PK(Batches):
    """``classes`` (P) classes x ``images`` (K) images.

    Rule: classes are visited in a shuffled cycle (the visits of two classes differ by at most one over an
    epoch), no class twice in a batch; each gives the next K different images of its own shuffled cycle, all
    it has if it has fewer. More classes then fill the batch up to P x K; the last of them may give fewer than
    K. Where all classes together cannot give P x K, every batch holds what they can give. Images of a class
    stand side by side.

    Other settings as in ``Batches``.

    >>> sampler = PK([0, 0, 0, 1, 1, 1, 2, 2, 2], classes=2, images=2, seed=1)
    >>> len(sampler), [len(batch) for batch in sampler]
    (2, [4, 4])
    """

    name = "pk"

    def __init__(
        self,
        labels: Labels,
        classes: int = 60,
        images: int = 3,
        *,
        batches: int | None = None,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        super().__init__(labels, batches=batches, seed=seed, epoch=epoch, rank=rank, ranks=ranks)
        self.classes = whole(self.name, "classes", classes, 1)
        self.images = self.most = whole(self.name, "images", images, 1)
        check_classes(self.name, self.classes, len(self.members), "classes")
        self.settle(min(self.classes * self.images, capacity(self.members, self.images)), len(self.labels))

    def compose(self, generator: np.random.Generator) -> Iterator[list[int]]:
        return pk_batches(self.members, self.images, self.size, generator)

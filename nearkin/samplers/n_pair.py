"""N classes with two images each, side by side: the batches of the N-pair loss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearkin.evaluation.inputs import Labels, whole
from nearkin.samplers.batches import Batches, check_classes
from nearkin.samplers.pk import pk_batches


class NPair(Batches):
    """``classes`` (N) classes x 2 images: rows 2i and 2i + 1 of a batch are the first and second of one
    class.

    Rule: classes with one image are left out; the others are visited in a shuffled cycle, no class twice in a
    batch, and each gives the next two different images of its own shuffled cycle. An epoch has (images of
    classes that take part) // 2N batches unless ``batches`` says otherwise. Other settings as in ``Batches``.

    >>> sampler = NPair([0, 0, 1, 1, 2], classes=2)
    >>> batch = next(iter(sampler))
    >>> len(batch), batch[0] // 2 == batch[1] // 2, 4 in batch
    (4, True, False)
    """

    name = "n_pair"
    most = 2

    def __init__(
        self,
        labels: Labels,
        classes: int = 60,
        *,
        batches: int | None = None,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        super().__init__(labels, batches=batches, seed=seed, epoch=epoch, rank=rank, ranks=ranks)
        self.members = [rows for rows in self.members if len(rows) >= 2]
        self.classes = whole(self.name, "classes", classes, 1)
        check_classes(self.name, self.classes, len(self.members), "classes with two images")
        self.settle(2 * self.classes, sum(map(len, self.members)))

    def compose(self, generator: np.random.Generator) -> Iterator[list[int]]:
        return pk_batches(self.members, 2, self.size, generator)

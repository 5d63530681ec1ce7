"""Batches of classes that the current embedding confuses (hard negative class mining, Sohn 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import torch

from nearkin.evaluation.inputs import Labels, Vectors, whole
from nearkin.samplers.deck import Deck, Hands
from nearkin.samplers.pk import PK
from nearkin.vectors import unit


class HardClass(PK):
    """``classes`` classes x ``images`` images, the classes of a batch chosen to be confusable.

    Rule, after ``update(embeddings)``: the center of a class is the mean of its unit embeddings, scaled to
    length 1. For each batch the first class is the next of a shuffled cycle over all classes; it and others
    drawn at random, ``pool`` in all, are the candidates. Then, again and again, the candidate joins whose
    largest cosine between its center and a center already chosen is largest (among equals the one drawn
    first). Each class gives the next ``images`` different images of its own shuffled cycle. As in ``PK``,
    further classes fill the batch where classes have fewer images: the remaining candidates in the same
    greedy order, then the other classes at random.

    ``pool``: None means ten times ``classes``; never more than there are classes. Before any update the
    batches are those of ``PK``. Call ``update`` with the same embeddings to repeat an epoch, or ``restore`` its
    state; under several ranks, with the same embeddings on each. Departure from the paper: class means instead of one or
    two sampled images per class.

    >>> sampler = HardClass([0, 0, 1, 1, 2, 2, 3, 3], classes=2, images=2)
    >>> sampler.update([[1.0, 0.1]] * 2 + [[0.1, 1.0]] * 2 + [[1.0, 0.2]] * 2 + [[0.2, 1.0]] * 2)
    >>> all({row // 2 for row in batch} in ({0, 2}, {1, 3}) for batch in sampler)
    True
    """

    name = "hard_class"

    def __init__(
        self,
        labels: Labels,
        classes: int = 60,
        images: int = 3,
        *,
        pool: int | None = None,
        batches: int | None = None,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        super().__init__(labels, classes, images, batches=batches, seed=seed, epoch=epoch, rank=rank, ranks=ranks)
        self.pool = 10 * self.classes if pool is None else whole(self.name, "pool", pool, self.classes)
        self.centers: np.ndarray | None = None

    def update(self, embeddings: Vectors) -> None:
        """Take the current ``embeddings`` (n, d) of all rows of labels."""
        vectors = unit(self.vectors(embeddings))
        means = [vectors[torch.from_numpy(rows).to(vectors.device)].mean(0) for rows in self.members]
        self.centers = unit(torch.stack(means)).cpu().numpy()

    def state(self) -> dict[str, np.ndarray]:
        return {} if self.centers is None else {"centers": self.centers}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.centers = state.get("centers")

    def compose(self, generator: np.random.Generator) -> Iterator[list[int]]:
        return super().compose(generator) if self.centers is None else self._confusable(self.centers, generator)

    def _confusable(self, centers: np.ndarray, generator: np.random.Generator) -> Iterator[list[int]]:
        hands, firsts = Hands(self.members, generator), Deck(np.arange(len(self.members)), generator)
        while True:
            first = next(firsts.deal())
            others = generator.permutation(len(self.members))
            order = np.concatenate([[first], others[others != first]])
            chosen = chain(greedy(centers, order[: self.pool]), order[self.pool :].tolist())
            yield hands.fill(chosen, self.images, self.size)


def greedy(centers: np.ndarray, candidates: np.ndarray) -> Iterator[int]:
    """Candidates from the first on, each next one the most similar to any that came before.

    >>> list(greedy(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), np.array([0, 1, 2])))
    [0, 2, 1]
    """
    pool = centers[candidates]
    nearest = np.full(len(candidates), -2.0)
    waiting = np.ones(len(candidates), bool)
    place = 0
    for _ in candidates:
        waiting[place] = False
        yield int(candidates[place])
        nearest = np.maximum(nearest, pool @ pool[place])
        place = int(np.where(waiting, nearest, -np.inf).argmax())

"""Shuffled cycles from which batches are dealt: every item comes once before any comes again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from nearkin.samplers.batches import Members


class Deck:
    """An endless shuffled cycle of ``items``: shuffled anew each time it runs out.

    At any moment the numbers of times two items were dealt differ by at most one.

    >>> deck = Deck([10, 20, 30], np.random.default_rng(0))
    >>> sorted(deck.deal()), sorted(deck.deal())
    ([10, 20, 30], [10, 20, 30])
    """

    def __init__(self, items: Sequence[int] | np.ndarray, generator: np.random.Generator) -> None:
        self.items = np.asarray(items)
        self.generator = generator
        self.order: list[int] = []
        self.position = 0

    def deal(self) -> Iterator[int]:
        """Items one by one, no item twice, until all are dealt; the next deal goes on where this one was
        left.
        """
        dealt: set[int] = set()
        while len(dealt) < len(self.items):
            if self.position == len(self.order):
                self.order = self.generator.permutation(self.items).tolist()
                self.position = 0
            if self.order[self.position] in dealt:
                # Dealt at the end of the last cycle already: the next new item overtakes, this one waits its
                # turn.
                place = next(p for p in range(self.position, len(self.order)) if self.order[p] not in dealt)
                self.order.insert(self.position, self.order.pop(place))
            item = self.order[self.position]
            self.position += 1
            dealt.add(item)
            yield item


class Hands:
    """One deck of images per class, so that all images of a class are used before any is used again."""

    def __init__(self, members: Members, generator: np.random.Generator) -> None:
        self.members = members
        self.generator = generator
        self.decks: dict[int, Deck] = {}

    def take(self, class_number: int, count: int) -> list[int]:
        """``count`` different images of a class, or all it has if these are fewer."""
        if class_number not in self.decks:
            self.decks[class_number] = Deck(self.members[class_number], self.generator)
        return list(islice(self.decks[class_number].deal(), count))

    def fill(self, order: Iterable[int], images: int, size: int) -> list[int]:
        """A batch of ``size`` images: ``images`` of each class in turn, fewer where a class has fewer or the
        batch is full.
        """
        batch: list[int] = []
        for class_number in order:
            batch += self.take(class_number, min(images, size - len(batch)))
            if len(batch) == size:
                break
        return batch

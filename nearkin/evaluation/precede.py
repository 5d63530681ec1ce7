"""Which of two items comes first in a ranking."""

from __future__ import annotations

import torch
from torch import Tensor

from nearkin.evaluation.duplicates import copies
from nearkin.evaluation.positives import Positives
from nearkin.evaluation.similarity import Directions


class Order:
    """Compares items with positives: the more similar comes first, of equal ones the lower row; copies are equal."""

    def __init__(self, vectors: Directions, found: Positives) -> None:
        self.found = found
        twins = copies(vectors.vectors)
        self.names = None if twins is None else twins.names(len(vectors))

    def precedes(self, steps: Tensor, item: Tensor, positive: Tensor) -> Tensor:
        """Does an item, ``steps`` similar, come before a positive?"""
        rival, bar = self.found.item[positive], self.found.steps[positive]
        tie = steps == bar
        if self.names is not None:
            tie |= self.names[item] == self.names[rival]
        return torch.where(tie, item < rival, steps > bar)

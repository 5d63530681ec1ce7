"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hit:
    """An image that was found: its number in the index, its cosine to the query, where it lies, its class."""

    id: int
    similarity: float
    path: str
    label: str

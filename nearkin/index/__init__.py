"""Search over a person's own images: an index on the disk that grows, shrinks and never breaks."""

from __future__ import annotations

from nearkin.index.hits import Hit
from nearkin.index.index import Index
from nearkin.index.rows import Row

__all__ = ["Hit", "Index", "Row"]

"""Networks that turn images into embeddings."""

from nearkin.models.small import SmallNet

__all__ = ["SmallNet"]

"""What a pair loss is called with, and whether that fits together."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nearkin import checks


class Batch(NamedTuple):
    """The tensors of one call, as ``PairLoss.forward`` explains them."""

    embeddings: Tensor
    labels: Tensor | None = None
    gallery: Tensor | None = None
    gallery_labels: Tensor | None = None
    self_index: Tensor | None = None
    positive: Tensor | None = None
    negative: Tensor | None = None
    valid: Tensor | None = None
    weights: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and columns."""
        return len(self.embeddings), len(self.embeddings if self.gallery is None else self.gallery)

    def check(self) -> None:
        """Raise unless all fit together; what only a device knows is not asked for."""
        embeddings, labels, gallery, gallery_labels, self_index, positive, negative, valid, weights = self
        checks.vectors("embeddings", embeddings, least=2 if gallery is None else 1)
        n, device = len(embeddings), embeddings.device
        if gallery is not None:
            checks.vectors("gallery", gallery)
            if gallery.shape[1] != embeddings.shape[1]:
                raise ValueError(
                    f"gallery must have the dim of embeddings ({embeddings.shape[1]}), got "
                    f"{gallery.shape[1]}; embed both with the same network."
                )
            if gallery.device != device:
                raise ValueError(
                    f"gallery must be on the device of embeddings ({device}), got {gallery.device}; move it there."
                )
            if self_index is not None:
                checks.labels("self_index", self_index, n, "embeddings", device, "row numbers of the gallery")
                if device.type == "cpu" and len(self_index) and int(self_index.max()) >= len(gallery):
                    raise ValueError(
                        f"self_index must be -1 or a column of gallery (below {len(gallery)}), got "
                        f"{int(self_index.max())}; pass the position of each query in the gallery."
                    )
            if valid is not None:
                checks.column_mask("valid", valid, len(gallery), "gallery")
        else:
            for name, value in (("gallery_labels", gallery_labels), ("self_index", self_index), ("valid", valid)):
                if value is not None:
                    raise ValueError(f"{name} needs a gallery, got none; pass gallery too or leave {name} out.")
        if labels is not None:
            checks.labels("labels", labels, n, "embeddings", device)
        m = n if gallery is None else len(gallery)
        if positive is not None:
            checks.mask("positive", positive, (n, m))
            if negative is not None:
                checks.mask("negative", negative, (n, m))
                checks.disjoint("positive", positive, "negative", negative)
        elif negative is not None:
            raise ValueError("negative needs positive, got none; pass both masks, or labels instead.")
        elif labels is None:
            raise ValueError("labels must be given where no positive mask is, got None; pass labels or positive.")
        elif gallery is not None:
            if gallery_labels is None:
                raise ValueError("gallery_labels must be given with gallery, got None; pass one label per gallery row.")
            checks.labels("gallery_labels", gallery_labels, m, "gallery", device)
        if weights is not None:
            checks.sample_weights("weights", weights, n)

    def only_valid(self) -> Batch:
        """Without the columns that do not count, for losses that look at the whole matrix."""
        if self.gallery is None or self.valid is None:
            return self
        keep = self.valid.bool()
        place = torch.where(keep, keep.cumsum(0) - 1, -1)
        index = self.self_index
        return self._replace(
            gallery=self.gallery[keep],
            gallery_labels=None if self.gallery_labels is None else self.gallery_labels[keep],
            self_index=None if index is None else torch.where(index >= 0, place[index.clamp(min=0)], -1),
            positive=None if self.positive is None else self.positive[:, keep],
            negative=None if self.negative is None else self.negative[:, keep],
            valid=None,
        )

"""Cross-batch memory: embeddings of earlier batches as further columns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nearkin import checks
from nearkin.losses.base import PairLoss

OPTIONS = {"weights", "reduction", "total"}


class CrossBatchMemory(nn.Module):
    """Gives a pair loss the last ``size`` samples as additional columns (Wang 2020).

    Each call compares the batch with itself and with the memory, then puts the batch into the memory, replacing the oldest
    samples. The batch's own columns are live, those of the memory are constants. All state is in buffers, so a
    checkpoint holds the memory and a reloaded one goes on where it was.

    >>> from nearkin import losses
    >>> loss = CrossBatchMemory(losses.create("contrastive"), dim=4, size=8)
    >>> loss(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(1.)
    >>> int(loss.filled.sum())
    4
    """

    embeddings: Tensor
    labels: Tensor
    filled: Tensor
    position: Tensor

    def __init__(self, loss: PairLoss, *, dim: int | None = None, size: int = 1024, **unknown: Any) -> None:
        super().__init__()
        for key in unknown:
            raise TypeError(
                f"CrossBatchMemory: setting {key!r} is not known; pass dim=, the number of embedding dimensions, and size=, "
                f"that of the samples it holds."
            )
        if dim is None:
            raise TypeError("CrossBatchMemory needs dim=, got none; pass the number of embedding dimensions.")
        if not isinstance(loss, PairLoss):
            raise TypeError(
                f"loss must be a pair loss, got {type(loss).__name__}: a memory adds columns of samples; "
                f"proxy losses have no such columns."
            )
        dim, size = checks.plain(dim), checks.plain(size)
        checks.setting("CrossBatchMemory", "dim", dim, checks.COUNT)
        checks.setting("CrossBatchMemory", "size", size, checks.COUNT)
        self.loss = loss
        self.register_buffer("embeddings", torch.zeros(size, dim))
        self.register_buffer("labels", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("filled", torch.zeros(size, dtype=torch.bool))
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))

    def forward(self, embeddings: Tensor, labels: Tensor, *columns: Any, **options: Any) -> Tensor:
        """The loss of the batch against itself and the memory; ``weights``, ``reduction`` and ``total`` as in the loss."""
        if columns or not options.keys() <= OPTIONS:
            wrong = "gallery" if columns else min(options.keys() - OPTIONS)
            raise TypeError(
                f"{wrong} must not be given to a CrossBatchMemory, got one: it compares the batch with itself and with what "
                f"it holds, by labels; leave it out, or call the loss itself with memory.embeddings as gallery."
            )
        checks.vectors("embeddings", embeddings)
        if embeddings.shape[1] != self.embeddings.shape[1]:
            raise ValueError(
                f"embeddings must have the memory's dim {self.embeddings.shape[1]}, got {embeddings.shape[1]}; "
                f"create the memory with dim={embeddings.shape[1]}."
            )
        n = len(embeddings)
        checks.labels("labels", labels, n, "embeddings", embeddings.device)
        value = self.loss(
            embeddings,
            labels,
            torch.cat([embeddings, self.embeddings.to(embeddings.dtype)]),
            torch.cat([labels.long(), self.labels]),
            self_index=torch.arange(n, device=embeddings.device),
            valid=torch.cat([self.filled.new_ones(n), self.filled]),
            **options,
        )
        if self.training:
            self.put(embeddings, labels)
        return value

    @torch.no_grad()
    def put(self, embeddings: Tensor, labels: Tensor) -> None:
        """Add samples in the place of the oldest ones; one that is not finite leaves its place empty."""
        size = len(self.embeddings)
        embeddings, labels = embeddings[-size:], labels[-size:]
        place = (self.position + torch.arange(len(embeddings), device=self.position.device)) % size
        kept = embeddings.detach().to(self.embeddings.dtype)
        finite = torch.isfinite(kept).all(1)
        # Columns that do not count must be finite all the same.
        self.embeddings[place] = kept.masked_fill(~finite[:, None], 0)
        self.labels[place] = labels.long()
        self.filled[place] = finite
        self.position.copy_((self.position + len(embeddings)) % size)

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Those of the loss."""
        return self.loss.parameter_groups(lr)

    def reset(self) -> None:
        """Forget everything."""
        self.filled.zero_()
        self.position.zero_()

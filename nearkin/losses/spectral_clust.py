"""Spectral clustering loss."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from nearkin.derivatives import once
from nearkin.losses.base import Common, PairLoss
from nearkin.losses.whole import Whole
from nearkin.pairs import number
from nearkin.space import DOT, Space


class _Sloped(torch.autograd.Function):
    """A value with a gradient that is known: a decomposition's own derivative fails at equal singular values."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value.clone()

    @staticmethod
    @once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return slope * grad, None, None


class SpectralClust(PairLoss):
    """Makes the clusters that the embeddings span agree with the classes (Law 2017, [RLL 2.1.2]). Raw embeddings.

    ``rank(F) + C - 2 tr(F F^+ Y Y^+)``, F (N, dim) the embeddings, Y the one-hot labels of the C classes in the batch, ^+
    the pseudo-inverse; the rank has no gradient. A batch needs more samples than rank(F), else the value is the
    constant N - C (the paper's batch is 1,260 = 18 x 70). A gallery adds its samples to the batch. A weight counts a
    sample as that many equal ones; a miner leaves out samples without mined pair.

    >>> loss = SpectralClust()
    >>> loss(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), torch.tensor([0, 0, 1, 1]))
    tensor(0.4000)
    """

    name = "spectral_clust"
    rowwise = False
    why = "it compares subspaces spanned by the whole batch"

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__(**common)

    @property
    def space(self) -> Space:
        return DOT

    def whole(self, pairs: Whole) -> Tensor:
        samples, classes, weights = gathered(pairs)
        root = weights.sqrt()[:, None]
        vectors = samples * root
        with torch.no_grad():
            if not torch.isfinite(vectors).all():
                return vectors.sum() * torch.nan
            left, singular, right = torch.linalg.svd(vectors, full_matrices=False)
            kept = singular > singular.max() * max(vectors.shape) * torch.finfo(vectors.dtype).eps
            left, singular, right = left[:, kept], singular[kept], right[kept]
            rank, present = len(singular), len(torch.unique(classes))
            if rank >= len(vectors):
                raise ValueError(
                    f"embeddings must hold more rows than their rank for spectral_clust, got {len(vectors)} rows "
                    f"of rank {rank}: the loss would be constant; use a larger batch or a smaller dim."
                )
            target = _class_projection(classes, weights)
            shared = target @ left
            value = rank + present - 2 * (left * shared).sum()
            # d tr(P Q) / dF = 2 (I - P) Q (F^+)^T for the projection P = F F^+.
            slope = -4 * (shared - left @ (left.T @ shared)) @ (right / singular[:, None])
        return _Sloped.apply(vectors, value, slope)

    def similarity_gradient(self, pairs: Whole) -> Tensor:
        """dL / d(f_i . f_j), the entries taken as independent: the symmetric G with (G + G^T) F = dL/dF."""
        assert pairs.own
        classes, _ = pairs.classes()
        inverse = torch.linalg.pinv(pairs.dot, hermitian=True)
        outside = torch.eye(len(inverse), dtype=inverse.dtype, device=inverse.device) - pairs.dot @ inverse
        half = outside @ _class_projection(classes, torch.ones_like(pairs.anchor_weights)) @ inverse
        return -2 * (half + half.T)


def gathered(pairs: Whole) -> tuple[Tensor, Tensor, Tensor]:
    """Every sample of batch and gallery once, with class number and weight; the query itself where it is a column."""
    classes, column_classes = pairs.classes()
    weights = pairs.anchor_weights
    samples = pairs.queries
    if pairs.loss.chosen is not None:
        keep = number(pairs.mined.positive) + number(pairs.mined.negative) > 0
        samples, classes, weights = samples[keep], classes[keep], weights[keep]
    if pairs.own:
        return samples, classes, weights
    fresh = torch.ones(len(pairs.columns), dtype=torch.bool, device=samples.device)
    if pairs.masks.self_index is not None:
        fresh[pairs.masks.self_index[pairs.masks.self_index >= 0]] = False
    return (
        torch.cat([samples, pairs.columns[fresh]]),
        torch.cat([classes, column_classes[fresh]]),
        torch.cat([weights, weights.new_ones(int(fresh.sum()))]),
    )


def _class_projection(classes: Tensor, weights: Tensor) -> Tensor:
    """Y Y^+ with rows weighted by the square root of the weights."""
    root = weights.sqrt()
    same = (classes[:, None] == classes).to(weights.dtype)
    return same * root[:, None] * root / torch.where(weights > 0, same @ weights, torch.ones_like(weights))[:, None]

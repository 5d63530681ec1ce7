"""The pair-weight view: a loss is a rule that assigns weights to pairs, and a rule of weights is a loss.

With G_ij = dL / ds_ij, entries taken as independent, the signed weight of a pair is w_ij = (1 - 2 I_ij) G_ij, I = 1 for
positives. ``sum_i (sum_N w s - sum_P w s)`` with w constant has the same gradient as L. Weights are shown signed: a
negative one pushes a positive pair apart or pulls a negative pair together (nra does that).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor

from nearkin import checks, engine
from nearkin.losses import Loss, PairLoss, ProxyLoss
from nearkin.losses.base import Common
from nearkin.losses.whole import Whole
from nearkin.miners import Mined, check_signature
from nearkin.pairs import spread

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]


class PairWeights(NamedTuple):
    """Signed weights and similarities (n, m) of every pair, and which pairs are positive or negative.

    Rows are samples (proxies for proxy_anchor and proxy_repulsion), columns samples or proxies. A similarity is the inner
    product of what the loss compares: unit vectors, or raw ones for n_pair, nra and spectral_clust.
    """

    weights: Tensor
    similarities: Tensor
    positive: Tensor
    negative: Tensor


def pair_weights(
    loss: Loss, embeddings: Tensor, labels: Tensor | None = None, *args: Any, **options: Any
) -> PairWeights:
    """Signed weights of every pair of a batch under a loss; further arguments as in a call of the loss.

    The weights are those of the loss as it is reduced: of a mean over N anchors they are 1/N of an anchor's own.

    >>> from nearkin import losses
    >>> view = pair_weights(losses.create("contrastive"), torch.eye(4), torch.tensor([0, 0, 1, 1]))
    >>> view.weights[0]
    tensor([0.0000, 0.2500, 0.0000, 0.0000])
    """
    _check_loss(loss)
    checks.vectors("embeddings", embeddings)
    if isinstance(loss, ProxyLoss):
        loss.check_call(embeddings, labels, args, options.get("weights"), options.keys() - {"weights"})
    plan: Any
    with torch.enable_grad(), torch.autocast(embeddings.device.type, enabled=False):
        plan = loss.plan(embeddings.detach(), labels, *args, **options)  # type: ignore[arg-type]
        dot = (plan.queries @ plan.columns.T).detach()
    gradient = similarity_gradient(loss, plan, dot)
    positive, negative = loss.pair_masks(plan, dot)
    signed = gradient * (torch.sign(negative) - torch.sign(positive))
    return PairWeights(signed, dot, positive.bool(), negative.bool())


def similarity_gradient(loss: Loss, plan: engine.Plan | Whole, dot: Tensor) -> Tensor:
    """dL / ds for the given similarities (n, m), entries taken as independent."""
    own = getattr(loss, "similarity_gradient", None)
    if isinstance(plan, Whole) and own is not None:
        return own(replace(plan, given=dot))
    with torch.enable_grad(), torch.autocast(dot.device.type, enabled=False):
        leaf = dot.detach().requires_grad_(True)
        if isinstance(plan, Whole):
            value = loss.whole(replace(plan, given=leaf))  # type: ignore[call-arg, arg-type]
        elif isinstance(loss, PairLoss):
            value = engine.dense(plan, "mean", leaf)
        else:
            value = loss.value(plan, "mean", leaf)
        if not value.requires_grad:
            return torch.zeros_like(dot)
        (gradient,) = torch.autograd.grad(value, leaf, allow_unused=True)
    return torch.zeros_like(dot) if gradient is None else gradient


class Curve(NamedTuple):
    """Weight against similarity, for a positive and for a negative pair (each of the length of ``similarity``)."""

    similarity: Tensor
    positive: Tensor
    negative: Tensor


# The company in which a pair is looked at: an anchor with two further positives, and three classes of negatives.
CONTEXT_POSITIVES = (0.35, 0.65)
CONTEXT_NEGATIVES = (-0.2, 0.4)
CONTEXT_CLASSES = 4
CONTEXT_IMAGES = 4


def curve(loss: Loss, points: int = 81, low: float = -1.0, high: float = 1.0) -> Curve:
    """The weight a loss gives a pair as its similarity goes from ``low`` to ``high`` (figure 1 of the unified view).

    The pair belongs to an anchor of a fixed batch of 4 classes x 4 whose other positives have similarity 0.35 and 0.65,
    and whose negatives lie evenly between -0.2 and 0.4; proxy losses see samples and proxies likewise, further centers of
    a class at -0.3. Weights are the anchor's own (N times those of a mean over N anchors). Only the one similarity
    moves, except for spectral_clust, which needs vectors: there the pair's other member turns.

    >>> from nearkin import losses
    >>> found = curve(losses.create("contrastive"), points=5)
    >>> found.negative
    tensor([0., 0., 0., 0., 1.], dtype=torch.float64)
    """
    _check_loss(loss)
    similarity = torch.linspace(low, high, points, dtype=torch.float64)
    training = loss.training
    loss.eval()  # a random miner draws the same for every point
    try:
        if loss.name == "spectral_clust":
            return Curve(similarity, *_turning(loss, similarity))
        plan, dot = _context(loss)
        positive, negative = (mask[0].nonzero().squeeze(1) for mask in plan.masks.all_rows(dot))
        found = []
        for column, sign in ((int(positive[0]), -1.0), (int(negative[-1]), 1.0)):
            weights = []
            for value in similarity:
                probe = dot.clone()
                probe[0, column] = value
                if isinstance(plan, Whole):
                    probe[column, 0] = value
                weights.append(sign * similarity_gradient(loss, plan, probe)[0, column] * len(dot))
            found.append(torch.stack(weights))
    finally:
        loss.train(training)
    return Curve(similarity, *found)


def _check_loss(loss: object) -> None:
    """Raise unless it is a loss with pairs of its own, which a memory only lends columns to."""
    if not isinstance(loss, PairLoss | ProxyLoss):
        came = repr(loss) if isinstance(loss, str) else type(loss).__name__
        raise TypeError(
            f"loss must be a pair or proxy loss, got {came}; pass losses.create(NAME), and of a memory memory.loss."
        )


def _context(loss: Loss) -> tuple[engine.Plan | Whole, Tensor]:
    """A plan over made-up similarities."""
    proxy = isinstance(loss, ProxyLoss)
    classes = loss.classes if isinstance(loss, ProxyLoss) else CONTEXT_CLASSES
    dim = loss.dim if isinstance(loss, ProxyLoss) else 8
    images = 2 if getattr(loss, "form", None) == "mc" else CONTEXT_IMAGES
    labels = torch.arange(classes).repeat_interleave(images)
    # Of these vectors only the length matters: the similarities between them are replaced.
    vectors = torch.nn.functional.normalize(torch.ones(len(labels), dim, dtype=torch.float64), dim=1)
    plan = loss.plan(vectors, labels)
    dot = torch.zeros(plan.masks.shape, dtype=torch.float64)
    positive, negative = plan.masks.all_rows(dot)
    rows_are_proxies = isinstance(loss, ProxyLoss) and loss.proxies_are_rows
    for i in range(len(dot)):
        p, n = positive[i].nonzero().squeeze(1), negative[i].nonzero().squeeze(1)
        near = torch.linspace(*CONTEXT_POSITIVES, len(p), dtype=torch.float64) if len(p) > 1 else torch.tensor([0.65])
        dot[i, p] = torch.full_like(near, -0.3) if proxy and len(p) > 1 and not rows_are_proxies else near.double()
        dot[i, n] = torch.linspace(*CONTEXT_NEGATIVES, len(n), dtype=torch.float64)
        dot[i, positive[i] + negative[i] == 0] = 1.0
    return plan, (dot + dot.T) / 2 if isinstance(plan, Whole) else dot


def _turning(loss: Loss, similarity: Tensor) -> tuple[Tensor, Tensor]:
    """Weights of a positive and a negative pair of real vectors in few dimensions, the pair's second member turning."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(CONTEXT_CLASSES).repeat_interleave(CONTEXT_IMAGES)
    centers = torch.nn.functional.one_hot(labels, 5).double()
    vectors = centers + 0.3 * torch.randn(centers.shape, generator=generator, dtype=torch.float64)
    vectors = torch.nn.functional.normalize(vectors, dim=1)
    anchor = vectors[0]
    found = []
    for partner in (1, -1):
        side = torch.nn.functional.normalize(vectors[partner] - (vectors[partner] @ anchor) * anchor, dim=0)
        weights = []
        for value in similarity:
            turned = vectors.clone()
            turned[partner] = value * anchor + (1 - value.square()).clamp(min=0).sqrt() * side
            weights.append(pair_weights(loss, turned, labels).weights[0, partner] * len(labels))
        found.append(torch.stack(weights))
    return found[0], found[1]


class WeightedPairs(PairLoss):
    """A loss made of a rule: ``l_i = sum_N w s - sum_P w s`` with the weights w = rule(s, positive, negative) constant.

    ``rule`` maps similarities and masks of some rows (b, m) to weights (b, m), positive where a pair should move as its
    label says. Its value is only a stand-in; its gradient is what the rule says. Row-wise: every engine runs it.

    >>> equal = WeightedPairs(rule=lambda s, positive, negative: torch.ones_like(s), miner="vthm")
    >>> equal(torch.eye(4), torch.tensor([0, 0, 1, 1]))
    tensor(0.)
    """

    name = "weighted_pairs"
    whole_rows = True

    def __init__(self, *, rule: Rule | None = None, **common: Unpack[Common]) -> None:
        super().__init__(**common)
        wanted = "weighted_pairs: rule must be a function of (similarity, positive, negative)"
        if rule is None or not callable(rule):
            came = "none" if rule is None else type(rule).__name__
            raise TypeError(f"{wanted}, got {came}; pass a function that returns weights.")
        check_signature(rule, wanted, "return one weight per pair")
        self.rule = rule

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: engine.Sizes) -> Tensor:
        with torch.no_grad():
            positive, negative = spread(mined.positive, matrix), spread(mined.negative, matrix)
            weights = self.rule(matrix, positive, negative)
            if not isinstance(weights, Tensor):
                raise TypeError(
                    f"rule must return a tensor of weights of shape {tuple(matrix.shape)}, got "
                    f"{type(weights).__name__}; return one weight per pair."
                )
            if weights.shape != matrix.shape:
                raise ValueError(
                    f"rule must return weights of shape {tuple(matrix.shape)}, got {tuple(weights.shape)}; "
                    f"return one weight per pair."
                )
            signed = weights * (negative - positive)
        return (matrix * signed).sum(1)


__all__ = ["Curve", "PairWeights", "WeightedPairs", "curve", "pair_weights", "similarity_gradient"]

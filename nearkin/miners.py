"""Miners choose pairs. A miner sees the similarities of some rows and their masks and returns new masks, or links each
positive with one negative, which makes triplets.

A user's own miner is a function ``(similarity, positive, negative) -> (positive, negative)`` of counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nearkin import checks, pairs
from nearkin.noise import uniform


class Links(NamedTuple):
    """Triplets of each row, side by side: column of the positive, column of the negative, how often each counts.

    A triplet exists where ``negatives`` counts; ``positives`` may count alone (a positive that found no negative).
    """

    positive: Tensor
    negative: Tensor
    positives: Tensor
    negatives: Tensor


class Mined(NamedTuple):
    """The kept pairs as counts, and the links between them where the miner makes triplets."""

    positive: Tensor
    negative: Tensor
    links: Links | None = None


class Context(NamedTuple):
    """What some miners need besides the rows: the most positives of a row, the embedding size, and for drawing the key
    of this step and the number of every row."""

    depth: int
    dim: int
    key: Tensor
    ids: Tensor


def every(similarity: Tensor, positive: Tensor, negative: Tensor, context: Context) -> Mined:
    """Every pair, every triplet."""
    return Mined(positive, negative)


def semihard(
    similarity: Tensor, positive: Tensor, negative: Tensor, context: Context, *, fallback: str | None = None
) -> Mined:
    """For each (a, p) the most similar negative that is less similar than p [DD 2.20].

    A positive without such a negative is left out; with ``fallback="easiest"`` it takes the farthest negative.
    """
    columns, counts = pairs.counted(positive, context.depth)
    near = similarity.gather(1, columns)
    hidden = pairs.hide(similarity, negative)
    found, chosen = [], []
    for k in range(columns.shape[1]):
        # Negatives at or above the positive go far below the others.
        value, index = torch.add(hidden, pairs.below(hidden, near[:, k : k + 1]).sub_(1), alpha=pairs.FAR).max(1)
        ok = value > -pairs.FAR / 2
        if fallback == "easiest":
            farthest, easiest = torch.add(similarity, 1 - torch.sign(negative), alpha=pairs.FAR).min(1)
            index, ok = torch.where(ok, index, easiest), ok | (farthest < pairs.FAR / 2)
        found.append(ok)
        chosen.append(index)
    keep = counts * torch.stack(found, 1) if found else counts
    index = torch.stack(chosen, 1) if chosen else columns
    return linked(positive, Links(columns, index, keep, keep))


def hard(similarity: Tensor, positive: Tensor, negative: Tensor, context: Context) -> Mined:
    """For each anchor the least similar positive and the most similar negative [DD 2.18-2.19].

    An anchor that lacks one side keeps the other as a pair; it makes no triplet.
    """
    far, p = torch.add(similarity, 1 - torch.sign(positive), alpha=pairs.FAR).min(1, keepdim=True)
    near, n = pairs.hide(similarity, negative).max(1, keepdim=True)
    has_p = (far < pairs.FAR / 2).to(similarity.dtype)
    has_n = (near > -pairs.FAR / 2).to(similarity.dtype)
    empty = torch.zeros_like(similarity)
    both = has_p * has_n
    return Mined(empty.scatter(1, p, has_p), empty.scatter(1, n, has_n), Links(p, n, both, both))


def vthm(similarity: Tensor, positive: Tensor, negative: Tensor, context: Context, *, margin: float = 0.1) -> Mined:
    """Negatives above the least similar positive minus margin, positives below the most similar negative plus margin
    [UV 5.1]; nothing for an anchor that lacks either side."""
    lowest = pairs.masked_min(similarity, positive)[:, None]
    highest = pairs.masked_max(similarity, negative)[:, None]
    # An empty side is +-inf here, which keeps nothing of the other side by itself.
    return Mined(
        positive * pairs.below(similarity, highest + margin), negative * pairs.above(similarity, lowest - margin)
    )


def distance_weighted(
    similarity: Tensor, positive: Tensor, negative: Tensor, context: Context, *, cutoff: float = 0.5, limit: float = 1.4
) -> Mined:
    """One negative per (a, p), drawn with log-weight (2-n) log d - (n-3)/2 log(1 - d^2/4) (Wu 2017).

    d is clipped below at ``cutoff``; none is drawn beyond ``limit``; a positive without candidate stays alone. With
    s = 1 - d^2/2 the weight is (1 - s^2)^(-(n-3)/2) / d, one logarithm instead of two.
    """
    s = similarity.clamp(max=1 - cutoff**2 / 2)
    candidates = negative * pairs.above(similarity, 1 - limit**2 / 2)
    log_weight = torch.log((1 - s.square()).clamp(min=1e-6)).mul_((3 - context.dim) / 2)
    log_weight = pairs.hide(log_weight, candidates)
    top = log_weight.amax(1, keepdim=True)
    top = top.masked_fill(top < -pairs.FAR / 2, 0)
    weight = pairs.safe_exp(log_weight - top).mul_(candidates).mul_(torch.rsqrt(2 - 2 * s))
    return drawn(positive, weight, context)


def random(similarity: Tensor, positive: Tensor, negative: Tensor, context: Context) -> Mined:
    """One negative per (a, p), each with the same chance."""
    return drawn(positive, negative, context)


def non_trivial(
    similarity: Tensor, positive: Tensor, negative: Tensor, context: Context, *, alpha: float = 1.2, margin: float = 0.4
) -> Mined:
    """Positives farther than alpha - margin, negatives nearer than alpha, as in ranked list loss [RLL 8, 11]."""
    distance = pairs.UNIT_DISTANCE.matrix(similarity)
    return Mined(positive * pairs.above(distance, alpha - margin), negative * pairs.below(distance, alpha))


def drawn(positive: Tensor, weight: Tensor, context: Context) -> Mined:
    """Draw one column per (a, p) with probability proportional to ``weight``, by the inverse of the cumulated sum."""
    columns, counts = pairs.counted(positive, context.depth)
    total = weight.sum(1, keepdim=True)
    cumulated = weight.cumsum(1)
    u = uniform(context.key, context.ids[:, None], columns).to(weight.dtype)
    last = cumulated[:, -1:]
    target = torch.minimum(u * last, last * (1 - torch.finfo(weight.dtype).eps))
    index = torch.searchsorted(cumulated, target.contiguous(), right=True).clamp(max=weight.shape[1] - 1)
    possible = (total > 0).to(weight.dtype) * torch.sign(weight.gather(1, index))
    return linked(positive, Links(columns, index, counts, counts * possible))


def linked(like: Tensor, links: Links) -> Mined:
    """Counts of the pairs that occur in links."""
    empty = torch.zeros_like(like)
    return Mined(
        empty.scatter_add(1, links.positive, links.positives),
        empty.scatter_add(1, links.negative, links.negatives),
        links,
    )


def product(mined: Mined, depth: int) -> Links:
    """Every kept positive with every kept negative of its row, as links."""
    p, positives = pairs.counted(mined.positive, depth)
    n, negatives = pairs.counted(mined.negative, mined.negative.shape[1])
    shape = (len(p), p.shape[1], n.shape[1])
    count = (positives[:, :, None] * negatives[:, None, :]).flatten(1)
    return Links(p[:, :, None].expand(shape).flatten(1), n[:, None, :].expand(shape).flatten(1), count, count)


MINERS: dict[str, Callable[..., Mined]] = {
    "all": every,
    "semihard": semihard,
    "hard": hard,
    "vthm": vthm,
    "distance_weighted": distance_weighted,
    "non_trivial": non_trivial,
    "random": random,
}
LIMITS: dict[str, checks.Limit | tuple[object, ...]] = {
    "fallback": (None, "easiest"),
    "margin": checks.NOT_NEGATIVE,
    "alpha": checks.POSITIVE,
    "cutoff": checks.Limit(low=0, high=2, low_open=True, high_open=True),
    "limit": checks.Limit(low=0, high=2, low_open=True),
}
RANDOM = ("distance_weighted", "random")
LINKING = ("semihard", "hard", *RANDOM)


@dataclass(frozen=True)
class Miner:
    """A miner with its settings: what ``create`` returns and what ``miner=`` of a loss may be given."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = None

    @property
    def random(self) -> bool:
        return self.function is None and self.name in RANDOM

    @property
    def needs_depth(self) -> bool:
        return self.function is None and self.name in LINKING

    def __call__(self, similarity: Tensor, positive: Tensor, negative: Tensor, context: Context) -> Mined:
        with torch.no_grad():
            if self.function is None:
                return MINERS[self.name](similarity, positive, negative, context, **self.settings)
            result = self.function(similarity, positive, negative)
            if isinstance(result, Mined):
                return result
            kept_positive, kept_negative = result
            return Mined(kept_positive.to(similarity.dtype), kept_negative.to(similarity.dtype))


def names() -> list[str]:
    """The names ``create`` takes."""
    return sorted(MINERS)


def create(name: str, **settings: Any) -> Miner:
    """A miner by name, for ``miner=`` of a loss.

    >>> create("semihard", fallback="easiest").name
    'semihard'
    """
    if name not in MINERS:
        raise ValueError(checks.unknown("miner", name, MINERS))
    known = [p.name for p in inspect.signature(MINERS[name]).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for key, value in settings.items():
        if key not in known:
            raise TypeError(
                checks.unknown(f"{name}: setting", key, known)
                if known
                else f"{name} takes no setting, got {key!r}; leave it out."
            )
        checks.setting(name, key, value, LIMITS[key])
    return Miner(name, settings)


def resolve(owner: str, miner: str | Callable[..., Any] | None) -> Miner | None:
    """The miner that ``miner=`` of a loss means: None, a name, one made by ``create``, or a user's function."""
    if miner is None or isinstance(miner, Miner):
        return miner
    if isinstance(miner, str):
        return create(miner)
    if callable(miner):
        return Miner(getattr(miner, "__name__", "own"), {}, miner)
    raise TypeError(
        f"{owner}: miner must be a name, a function or None, got {type(miner).__name__}; see nearkin.miners.names()."
    )


__all__ = ["LINKING", "MINERS", "RANDOM", "Context", "Links", "Mined", "Miner", "create", "names", "product", "resolve"]

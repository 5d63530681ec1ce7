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

from nearkin import checks
from nearkin.noise import of_pairs
from nearkin.pairs import FAR, Few, Mask, above, below, few, kept, spread, take
from nearkin.reductions import hide, masked_max, masked_min, safe_exp_
from nearkin.space import UNIT_DISTANCE


class Mined(NamedTuple):
    """The kept pairs. A miner that makes triplets links them: entry k of a row's positives goes with entry k of its
    negatives, and a triplet exists where the negative counts (a positive may count alone)."""

    positive: Mask
    negative: Mask
    linked: bool = False


class Context(NamedTuple):
    """What some miners need besides the rows: the most positives of a row, the embedding size, and for drawing the key
    of this step and the number of every row."""

    depth: int
    dim: int
    key: Tensor
    ids: Tensor


def every(similarity: Tensor, positive: Mask, negative: Tensor, context: Context) -> Mined:
    """Every pair, every triplet."""
    return Mined(positive, negative)


def semihard(
    similarity: Tensor, positive: Mask, negative: Tensor, context: Context, *, fallback: str | None = None
) -> Mined:
    """For each (a, p) the most similar negative that is less similar than p [DD 2.20].

    A positive without such a negative is left out; with ``fallback="easiest"`` it takes the farthest negative.
    """
    mates = few(positive, context.depth)
    near = similarity.gather(1, mates.columns)
    hidden = hide(similarity, negative)
    if fallback == "easiest":
        farthest, easiest = torch.add(similarity, 1 - torch.sign(negative), alpha=FAR).min(1)
    found, chosen = [], []
    for k in range(mates.columns.shape[1]):
        # Negatives at or above the positive go far below the others.
        value, index = torch.add(hidden, below(hidden, near[:, k : k + 1]).sub_(1), alpha=FAR).max(1)
        ok = value > -FAR / 2
        if fallback == "easiest":
            index, ok = torch.where(ok, index, easiest), ok | (farthest < FAR / 2)
        found.append(ok)
        chosen.append(index)
    if not chosen:
        return Mined(mates, mates, linked=True)
    keep = mates.counts * torch.stack(found, 1)
    return Mined(Few(mates.columns, keep), Few(torch.stack(chosen, 1), keep), linked=True)


def hard(similarity: Tensor, positive: Mask, negative: Tensor, context: Context) -> Mined:
    """For each anchor the least similar positive and the most similar negative [DD 2.18-2.19].

    An anchor that lacks one side keeps the other as a pair; it makes no triplet.
    """
    mates = few(positive, context.depth)
    if not mates.columns.shape[1]:
        mates = Few(mates.columns.new_zeros(len(similarity), 1), similarity.new_zeros(len(similarity), 1))
    near, counts = take(similarity, mates)
    far, k = torch.add(near, 1 - torch.sign(counts), alpha=FAR).min(1, keepdim=True)
    close, n = hide(similarity, negative).max(1, keepdim=True)
    has_p = (far < FAR / 2).to(similarity.dtype)
    has_n = (close > -FAR / 2).to(similarity.dtype)
    # A negative without a positive is kept beside the triplets: entry 0 is the triplet, entry 1 the lonely negative.
    p = mates.columns.gather(1, k)
    return Mined(
        Few(torch.cat([p, p], 1), torch.cat([has_p, torch.zeros_like(has_p)], 1)),
        Few(torch.cat([n, n], 1), torch.cat([has_p * has_n, (1 - has_p) * has_n], 1)),
        linked=True,
    )


def vthm(similarity: Tensor, positive: Mask, negative: Tensor, context: Context, *, margin: float = 0.1) -> Mined:
    """Negatives above the least similar positive minus margin, positives below the most similar negative plus margin
    [UV 5.1]; nothing for an anchor that lacks either side."""
    near, _ = take(similarity, positive)
    lowest = masked_min(similarity, positive)[:, None]
    highest = masked_max(similarity, negative)[:, None]
    # An empty side is +-inf here, which keeps nothing of the other side by itself.
    return Mined(kept(positive, below(near, highest + margin)), above(similarity, lowest - margin).mul_(negative))


def distance_weighted(
    similarity: Tensor, positive: Mask, negative: Tensor, context: Context, *, cutoff: float = 0.5, limit: float = 1.4
) -> Mined:
    """One negative per (a, p), drawn with log-weight (2-n) log d - (n-3)/2 log(1 - d^2/4) (Wu 2017).

    d is clipped below at ``cutoff``; none is drawn beyond ``limit``; a positive without candidate stays alone. With
    s = 1 - d^2/2 the weight is (1 - s^2)^(-(n-3)/2) / d, one logarithm instead of two.
    """
    candidates = above(similarity, 1 - limit**2 / 2).mul_(negative)
    # Where nothing can be drawn s is 0, whose log-weight is 0: no larger than a candidate's.
    s = similarity.clamp(max=1 - cutoff**2 / 2).mul_(torch.sign(candidates))
    log_weight = s.square().neg_().add_(1).clamp_(min=1e-6).log_().mul_((3 - context.dim) / 2)
    weight = safe_exp_(log_weight.sub_(log_weight.amax(1, keepdim=True)))
    weight.mul_(candidates).mul_(s.mul_(-2).add_(2).rsqrt_())
    return drawn(positive, weight, context)


def random(similarity: Tensor, positive: Mask, negative: Tensor, context: Context) -> Mined:
    """One negative per (a, p), each with the same chance."""
    return drawn(positive, negative, context)


def non_trivial(
    similarity: Tensor, positive: Mask, negative: Tensor, context: Context, *, alpha: float = 1.2, margin: float = 0.4
) -> Mined:
    """Positives farther than alpha - margin, negatives nearer than alpha, as in ranked list loss [RLL 8, 11]."""
    distance = UNIT_DISTANCE.matrix(similarity)
    near, _ = take(distance, positive)
    return Mined(kept(positive, above(near, alpha - margin)), below(distance, alpha).mul_(negative))


def drawn(positive: Mask, weight: Tensor, context: Context) -> Mined:
    """Draw one column per (a, p) with probability proportional to ``weight``, by the inverse of the cumulated sum."""
    mates = few(positive, context.depth)
    cumulated = weight.cumsum(1)
    u = of_pairs(context.key, context.ids[:, None], mates.columns).to(weight.dtype)
    total = cumulated[:, -1:]
    target = torch.minimum(u * total, total * (1 - torch.finfo(weight.dtype).eps))
    index = torch.searchsorted(cumulated, target.contiguous(), right=True).clamp(max=weight.shape[1] - 1)
    possible = torch.sign(weight.gather(1, index))
    return Mined(mates, Few(index, mates.counts * possible), linked=True)


def together(values: Tensor, mined: Mined) -> tuple[Tensor, Mined]:
    """Only the columns that were mined, side by side, where these are few; what follows then works on few numbers."""
    positive, negative, linked = mined
    if not isinstance(positive, Few) or not isinstance(negative, Few):
        return values, mined
    p, n = positive.columns.shape[1], negative.columns.shape[1]
    places = torch.arange(p + n, device=values.device).expand(len(values), -1)
    compact = Mined(Few(places[:, :p], positive.counts), Few(places[:, p:], negative.counts), linked)
    return values.gather(1, torch.cat([positive.columns, negative.columns], 1)), compact


def product(mined: Mined, depth: int) -> Mined:
    """Every kept positive with every kept negative of its row, linked."""
    p, n = few(mined.positive, depth), few(mined.negative, 10**9)
    shape = (len(p.columns), p.columns.shape[1], n.columns.shape[1])
    count = (p.counts[:, :, None] * n.counts[:, None, :]).flatten(1)
    return Mined(
        Few(p.columns[:, :, None].expand(shape).flatten(1), count),
        Few(n.columns[:, None, :].expand(shape).flatten(1), count),
        linked=True,
    )


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

    def __call__(self, similarity: Tensor, positive: Mask, negative: Tensor, context: Context) -> Mined:
        with torch.no_grad():
            if self.function is None:
                return MINERS[self.name](similarity, positive, negative, context, **self.settings)
            return self._own(self.function(similarity, spread(positive, similarity), negative), similarity)

    def _own(self, result: object, similarity: Tensor) -> Mined:
        """What a user's function returned, as counts."""
        if isinstance(result, Mined):
            return result
        shape = (similarity.shape[0], similarity.shape[1])
        if not isinstance(result, tuple | list) or len(result) != 2:
            came = f"{len(result)} things" if isinstance(result, tuple | list) else type(result).__name__
            raise TypeError(
                f"miner {self.name} must return two masks of shape {shape}, positive and negative, got {came}; "
                f"return the pairs to keep, as in (positive, negative * (similarity > 0.5))."
            )
        names = f"miner {self.name}: positive", f"miner {self.name}: negative"
        for name, mask in zip(names, result, strict=True):
            checks.mask(name, mask, shape)
        checks.disjoint(names[0], result[0], names[1], result[1])
        return Mined(result[0].to(similarity.dtype), result[1].to(similarity.dtype))


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
    settings = {key: checks.plain(value) for key, value in settings.items()}
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
        _check_function(owner, miner)
        return Miner(getattr(miner, "__name__", "own"), {}, miner)
    raise TypeError(
        f"{owner}: miner must be a name, a function or None, got {type(miner).__name__}; see nearkin.miners.names()."
    )


def _check_function(owner: str, miner: Callable[..., Any]) -> None:
    """Raise unless a function can be called with what a miner is given."""
    wanted = f"{owner}: miner must be a function of (similarity, positive, negative)"
    if any(cls.__module__.startswith("pytorch_metric_learning.") for cls in type(miner).__mro__):
        raise TypeError(
            f"{wanted}, got {type(miner).__name__} of pytorch-metric-learning; docs/from-pytorch-metric-learning.md has "
            f"the same miner by its name here."
        )
    check_signature(miner, wanted, "return the two masks of the pairs to keep")


def check_signature(function: Callable[..., Any], wanted: str, remedy: str) -> None:
    """Raise unless a function can be called with similarities and two masks."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some of those written in C have none
        return
    try:
        signature.bind(None, None, None)
    except TypeError:
        raise TypeError(f"{wanted}, got one of {signature}; {remedy}.") from None


__all__ = [
    "LINKING",
    "MINERS",
    "RANDOM",
    "Context",
    "Mined",
    "Miner",
    "check_signature",
    "create",
    "names",
    "product",
    "resolve",
    "together",
]
